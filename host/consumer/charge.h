/*
 * Charge -- counts the attempt of a worker that died, or was ended, while its
 * user code ran for a message: the message is recorded as undelivered, failed
 * once more, exactly as if the handler had raised. Called by whoever outlives
 * the worker, before the dead instance's leases are let go of.
 *
 * Whether the budget is spent is for the next owner to judge, who has the
 * consumer's error policy at hand.
 */
#ifndef HOST_CONSUMER_CHARGE_H
#define HOST_CONSUMER_CHARGE_H

#include "consumer/attempt_slot.h"
#include "consumer/consumer.h"

/** How the attempt ended, for the reason that is recorded. */
struct attempt_end {
    bool hung;        /* it ran longer than limits.time and was ended for it */
    int64_t limit_us; /* limits.time */
    int signal;       /* otherwise: what ended the process, 0: an exit */
    int exit_code;    /* ... which this is the code of */
};

/**
 * Records one failed attempt, in a transaction of its own. *charged is false
 * when there was nothing to count: the attempt is of no message, the dead
 * instance holds the message's partition no more, the message is done or
 * skipped, the consumer was rebuilt or unsubscribed meanwhile, or the attempt
 * is counted already (so that a charge may be repeated when its answer was
 * lost). CONFLICT and LOST: nothing is known to be recorded, try again.
 * Of `env` db, catalog, names, topics, ids, clock, log and partitions are used.
 */
enum status charge_attempt(const struct consumer_env *env,
                           const char *instance_id,
                           const struct attempt *attempt,
                           const struct attempt_end *end, bool *charged,
                           struct diag *diag) MUST_CHECK;

#endif
