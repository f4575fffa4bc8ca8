/*
 * Retainer -- when captured events are looked at whose time is over, and what
 * the log is told of it, and with them the rows of run/expiry.h. Deleting is
 * topic/retention.h.
 */
#ifndef HOST_RUN_RETAINER_H
#define HOST_RUN_RETAINER_H

#include "run/application.h"
#include "run/expiry.h"
#include "topic/retention.h"

/** Starts as all zero. */
struct retainer {
    struct retention retention;
    struct expiry expiry;
    bool looked;         /* once */
    bool more_events;    /* there was more than a batch of them */
    bool more;           /* there is more than a batch of anything to delete */
    int64_t looked_at;   /* when the last look had ended */
    int64_t forced_told; /* monotonic: when it was told what force does */
    /* By force the topic's start has passed the lowest checkpoint, which was
     * here: nobody knows yet whether only its save was missing. */
    int64_t passed_start, passed_at;
    bool once; /* there is no later look: that is told at once */
};

/** Whether a batch is due at `now`, which may be any clock that never goes
 * back. While `busy`, that waits longer. */
bool retainer_is_due(const struct retainer *retainer,
                     const struct application *app, int64_t now, bool busy);

/** One batch of what is due. */
enum status retainer_step(struct retainer *retainer, struct application *app,
                          int64_t now, struct diag *diag) MUST_CHECK;

#endif
