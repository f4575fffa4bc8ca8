/*
 * Coordinator view -- what one look reads, in one statement: who lives, who
 * holds which lease of the consumers that the coordinator has, and which
 * instances have lapsed. What follows from it is decided in
 * partition/coordinator.c.
 */
#ifndef HOST_PARTITION_COORDINATOR_VIEW_H
#define HOST_PARTITION_COORDINATOR_VIEW_H

#include "partition/coordinator.h"

/** What was read of one lease. */
struct coordinator_lease {
    bool exists;
    bool live;
    int64_t generation;
    struct text instance; /* TEXT_NONE: free */
};

/** What was read of one consumer. */
struct coordinator_seen {
    struct text *members; /* living ones, sorted by the database */
    size_t nmembers;
    struct coordinator_lease *leases; /* by partition */
    bool mine;                        /* this instance is among the members */
};

/** All of it lives in the coordinator's arena. */
struct coordinator_view {
    struct coordinator_seen *consumers; /* in the coordinator's order */
    int64_t lapses; /* microseconds until the first of others does */
};

/** In a transaction of its own; those that have lapsed go into
 * k->lapsed. Statuses as db_query. */
enum status coordinator_view_read(struct coordinator *k,
                                  struct coordinator_view *view,
                                  struct diag *diag) MUST_CHECK;

#endif
