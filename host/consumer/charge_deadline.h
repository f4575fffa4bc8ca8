/*
 * Charge of a deadline -- counts the attempt of a worker that ended in the
 * handler of a saga's deadline. The row is the deadline's own: it says how
 * often it was tried, and the policy of the dead worker whether it is again.
 * Part of consumer/charge.h, which includes nothing of this.
 */
#ifndef HOST_CONSUMER_CHARGE_DEADLINE_H
#define HOST_CONSUMER_CHARGE_DEADLINE_H

#include "consumer/charge.h"

/** As charge_attempt. *charged is false when the deadline was fired, deleted or
 * set again since, or the attempt is counted already. */
enum status charge_deadline(const struct consumer_env *env,
                            const struct attempt *attempt,
                            const struct failure *failure, bool *charged,
                            struct diag *diag) MUST_CHECK;

#endif
