/*
 * Event store -- where the events of all aggregate types live: the shared
 * table, the aggregates' own tables, and the statements filled for them.
 * Opened once per connection's schema; topic/append.h writes through it,
 * topic/event_page.h reads its topic.
 */
#ifndef HOST_TOPIC_EVENT_STORE_H
#define HOST_TOPIC_EVENT_STORE_H

#include "db/catalog.h"
#include "schema/names.h"
#include "topic/topic.h"

struct event_store; /* topic/event_store.c */

enum status event_store_open(const char *dialect, const struct names *names,
                             const struct catalog *catalog, int partitions,
                             struct event_store **store,
                             struct diag *diag) MUST_CHECK;
/** NULL is allowed. */
void event_store_close(struct event_store *store);

/** The topic `event-store`; lives as long as the store. */
struct topic *event_store_topic(struct event_store *store);

#endif
