/*
 * Expiry -- deletes rows that are kept for a set age and are of no use after
 * that, in small batches: what became of commands. Which they are is one table
 * in expiry.c. Captured events are the retainer's (run/retainer.h).
 */
#ifndef HOST_RUN_EXPIRY_H
#define HOST_RUN_EXPIRY_H

#include "run/application.h"

/** Starts as all zero. */
struct expiry {
    bool looked; /* once */
    bool more;   /* there was more than a batch to delete */
    int64_t looked_at;
};

/** Whether a look is due at `now`, which may be any clock that never goes
 * back. While `busy`, that waits longer. */
bool expiry_is_due(const struct expiry *expiry, int64_t now, bool busy);

/** One batch of each kind. */
enum status expiry_step(struct expiry *expiry, struct application *app,
                        int64_t now, struct diag *diag) MUST_CHECK;

#endif
