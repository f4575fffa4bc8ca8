/*
 * Capture topic -- domain events that are published outside of the event
 * store: they belong to no aggregate's stream and have positions of their own.
 * Written through here, read as any topic is (topic/event_page.h); how long
 * they are kept is topic/retention.h's matter.
 */
#ifndef HOST_TOPIC_CAPTURE_H
#define HOST_TOPIC_CAPTURE_H

#include "topic/append.h"

struct capture; /* topic/capture.c */

enum status capture_open(const char *dialect, const struct names *names,
                         const struct catalog *catalog, int partitions,
                         struct capture **capture,
                         struct diag *diag) MUST_CHECK;
/** NULL is allowed. */
void capture_close(struct capture *capture);

/** The topic `event-capture`; lives as long as the capture. */
struct topic *capture_topic(struct capture *capture);

/**
 * Writes `count` events inside the caller's transaction, as append_events
 * does; of an event it takes `key` and nothing that belongs to a stream. Three
 * round trips at most, whatever `count` is.
 * INVALID, REFUSED, CONFLICT and *bad: as there.
 */
enum status capture_append(struct capture *capture, struct db *db,
                           const struct append_options *options,
                           const struct append_event *events, size_t count,
                           struct append_result *results, size_t *bad,
                           struct diag *diag) MUST_CHECK;

/** The checks of one event that need no database. */
enum status capture_check(const struct append_event *event,
                          int64_t payload_limit, struct diag *diag) MUST_CHECK;

#endif
