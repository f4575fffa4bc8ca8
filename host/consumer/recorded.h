/*
 * Recorded -- what is recorded of the messages ahead of a partition's
 * checkpoint: attempts that were counted before the page came so far, by a
 * supervisor whose worker died or by somebody who takes over with care. A page
 * applies no such message; its row holds the key from its position on.
 */
#ifndef HOST_CONSUMER_RECORDED_H
#define HOST_CONSUMER_RECORDED_H

#include "consumer/poll.h"
#include "consumer/undelivered.h"

struct recorded {
    struct undelivered_recorded *rows; /* in the consumer's arena */
    size_t count;
};

/** Reads what a page of `poll` may meet, up to a position. */
enum status recorded_read(struct consumer *consumer, const struct poll *poll,
                          int64_t upto, struct recorded *recorded,
                          struct diag *diag) MUST_CHECK;

/**
 * Ends the consumer's page at the first row whose message the page does not
 * meet: it is gone from the topic, superseded and compacted since its attempt
 * was counted. What comes behind it in its key waits for it; applied before it,
 * it would be overwritten by what is older. True when the page ends there.
 */
bool recorded_end_page(struct consumer *consumer, const struct poll *poll,
                       const struct recorded *recorded);

/** The row of a message for a key, NULL: there is none. */
const struct undelivered_recorded *recorded_of(const struct recorded *recorded,
                                               const struct message *message,
                                               struct text key, int partition);

/** The row of a message without keys, in any of the polled partitions; what has
 * ended a process is not asked again for another partition either. */
const struct undelivered_recorded *
recorded_without_key(const struct recorded *recorded,
                     const struct message *message, const struct poll *poll);

/** Whether a message without keys has its row in a partition. */
bool recorded_in(const struct recorded *recorded, const struct message *message,
                 int partition);

#endif
