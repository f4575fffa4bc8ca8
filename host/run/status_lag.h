/*
 * Status lag -- how many messages a consumer has still to apply, and how old
 * the oldest of them is. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_LAG_H
#define HOST_RUN_STATUS_LAG_H

#include "base/arena.h"
#include "run/application.h"

/** Counts of long stretches, kept for the next consumer that stands where one
 * stood before. Memory comes from the arena. */
struct status_lag_counts {
    struct arena *arena;
    struct status_lag_stretch *list; /* run/status_lag.c */
    size_t count;
};

struct status_lag {
    /* in */
    struct status_lag_counts *counts; /* shared by consumers, or NULL */
    const struct declaration *declaration;
    const int64_t *positions; /* by partition; count 0: nothing read yet */
    size_t count;
    int64_t lowest; /* of the positions; 0 when there is none */
    int64_t upto;   /* end of the topic */
    int64_t now_us;
    /* out */
    int64_t messages; /* STATUS_LAG_LIMIT: that many or more */
    int64_t age_us;   /* 0 when there is none */
};

enum status status_lag_read(struct application *app, struct status_lag *lag,
                            struct diag *diag) MUST_CHECK;

#endif
