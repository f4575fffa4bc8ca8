/*
 * Saga retainer -- when completed sagas are looked at whose time is over
 * (sagas.keep). Deleting is model/saga_retention.h.
 */
#ifndef HOST_RUN_SAGA_RETAINER_H
#define HOST_RUN_SAGA_RETAINER_H

#include "run/application.h"

/** Starts as all zero. */
struct saga_retainer {
    bool looked;       /* once */
    bool more;         /* there was more than a batch to delete */
    int64_t looked_at; /* when the last look had ended */
};

/** Whether a batch is due at `now`, which may be any clock that never goes
 * back. */
bool saga_retainer_is_due(const struct saga_retainer *retainer, int64_t now);

/** One batch, a transaction of its own. */
enum status saga_retainer_step(struct saga_retainer *retainer,
                               struct application *app, int64_t now,
                               struct diag *diag) MUST_CHECK;

#endif
