/*
 * Retry turn -- when a step of a consumer is given to its undelivered messages
 * and not to a page: when one of them is due, or was not looked at for long.
 * Pages and retries take turns, and what comes due one by one is gathered, so
 * that pages have most of the time. What such a step does is in
 * consumer/retry.h.
 */
#ifndef HOST_CONSUMER_RETRY_TURN_H
#define HOST_CONSUMER_RETRY_TURN_H

#include "consumer/consumer.h"

/** Whether the next step is theirs. */
bool retry_turn_comes(const struct consumer *consumer);

/** Whether they are to be looked at, be it that a page goes before. */
bool retry_turn_is_due(const struct consumer *consumer);

/** Whether messages wait for a retry that is not due yet. */
bool retry_turn_is_awaited(const struct consumer *consumer);

/** Looks at them with the next step, not when it is time. */
void retry_turn_now(struct consumer *consumer);

/** Tries what is due, at most a batch of it, and says when to look again.
 * *worked and statuses as retry_due. */
enum status retry_turn_take(struct consumer *consumer, bool *worked,
                            struct diag *diag) MUST_CHECK;

#endif
