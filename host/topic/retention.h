/*
 * Retention -- deletes the oldest messages of the capture topic, in small
 * batches. topic_start moves first and by itself: whoever reads knows from it
 * what is gone. Never past the slowest checkpoint of the consumers that are
 * subscribed, unless it is forced.
 */
#ifndef HOST_TOPIC_RETENTION_H
#define HOST_TOPIC_RETENTION_H

#include "db/catalog.h"
#include "db/db.h"

struct retention_policy {
    int64_t max_age_us; /* by occurred_at; 0: no limit */
    int64_t max_rows;   /* 0: no limit */
    bool force;         /* past checkpoints, too */
};

/** What is kept from batch to batch. Starts as all zero. */
struct retention {
    int64_t swept; /* nothing is left up to here */
    int64_t goal;  /* max_rows wants everything up to here gone */
};

struct retention_report {
    int64_t deleted;
    int64_t start;   /* topic_start, as it is now */
    bool passed;     /* the start passed a checkpoint, by force */
    int64_t slowest; /* the lowest checkpoint; INT64_MAX: there is none */
    bool more;       /* another batch is due at once */
};

/**
 * One batch, in two short transactions of its own: topic_start, then the rows.
 * `counted` lets it count rows, which walks as many entries of an index as are
 * kept; without it the goal found last still holds. `now_us` judges the age.
 * What was left behind by one that was interrupted is deleted first.
 */
enum status retention_step(struct db *db, const struct catalog *catalog,
                           const struct retention_policy *policy,
                           int64_t now_us, bool counted,
                           struct retention *retention,
                           struct retention_report *report,
                           struct diag *diag) MUST_CHECK;

#endif
