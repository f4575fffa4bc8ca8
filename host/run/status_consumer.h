/*
 * Status consumer -- reads what the database holds of each consumer: state,
 * checkpoints, undelivered messages, newest failure, lag. Grouped statements:
 * their number does not grow with the number of consumers, but for the lag of
 * those that have something left to do. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_CONSUMER_H
#define HOST_RUN_STATUS_CONSUMER_H

#include "run/status.h"

/** One reading; everything lives in the report's arena. */
struct status_reading {
    struct application *app;
    const struct status_request *request;
    struct status_report *report; /* its topics are read already */
    int64_t now_us;
};

/** In the caller's transaction. */
enum status status_consumers_read(struct status_reading *reading,
                                  struct diag *diag) MUST_CHECK;

/** What the scripts declare under the consumer's name, or NULL. */
const struct declaration *
status_consumer_declaration(const struct status_request *request,
                            const struct status_consumer *consumer);

/** NULL: not in the report. */
const struct status_topic *status_topic_find(const struct status_report *report,
                                             const char *name);

#endif
