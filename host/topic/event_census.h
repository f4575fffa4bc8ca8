/*
 * Event census -- how many events of each type a stretch of a topic holds: one
 * look that answers for every reader of that stretch.
 */
#ifndef HOST_TOPIC_EVENT_CENSUS_H
#define HOST_TOPIC_EVENT_CENSUS_H

#include "base/arena.h"
#include "db/db.h"
#include "topic/event_page.h"

struct event_census_group {
    struct text type;
    struct text aggregate_type; /* NULL data outside of the event store */
    int64_t count;
    int64_t first; /* the lowest position of them */
};

struct event_census {
    struct event_census_group *groups;
    size_t ngroups;
    bool whole; /* false: there was more than the limit, nothing is told */
};

/** Counts (after, upto], up to `limit` events. Memory comes from `arena`. */
enum status event_census_read(struct topic *topic, struct db *db, int64_t after,
                              int64_t upto, int64_t limit, struct arena *arena,
                              struct event_census *census,
                              struct diag *diag) MUST_CHECK;

/** What a filter without partitions and aggregate id finds there: how many,
 * and the position of the first (0: none). */
void event_census_match(const struct event_census *census,
                        const struct event_filter *filter, int64_t *count,
                        int64_t *first);

#endif
