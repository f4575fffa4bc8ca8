/*
 * Status lag -- how many messages a consumer has still to apply, and how old
 * the oldest of them is. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_LAG_H
#define HOST_RUN_STATUS_LAG_H

#include "run/application.h"

struct status_lag {
    /* in */
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
