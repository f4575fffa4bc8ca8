/*
 * Outcome -- decides what becomes of a message that failed, by the consumer's
 * failure policy: another attempt later, a dead letter, a halt, or a skip.
 */
#ifndef HOST_CONSUMER_OUTCOME_H
#define HOST_CONSUMER_OUTCOME_H

#include "consumer/consumer.h"

/** What becomes of a failed unit. */
struct outcome {
    bool skip;                      /* no row: it is passed over for good */
    struct undelivered_entry entry; /* otherwise */
    enum key_hold hold;             /* for the later messages of its key */
};

/** When a message that has failed so often is tried again. */
int64_t outcome_retry_at(const struct retry_policy *retry,
                         const struct message *message, int failures,
                         int64_t now_us);

/**
 * The outcome of a unit that has failed `failures` times now. The failure is
 * copied into the memory of the batch. `unresolved` says that its keys are not
 * known. A policy function that raises, or gives no word of the list, is
 * logged and means halt.
 */
struct outcome outcome_of(struct consumer *consumer, const struct unit *unit,
                          int failures, bool unresolved,
                          const struct failure *failure);

#endif
