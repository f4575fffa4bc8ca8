/*
 * Careful count -- the attempt of one message that is counted before it is
 * made (consumer/careful.h): in a row of its own, or in the one that it has
 * from an earlier failure. consumer->counted says which row that is; whoever
 * dies of the attempt leaves it behind. Taking it back is for
 * consumer/careful.h.
 */
#ifndef HOST_CONSUMER_CAREFUL_COUNT_H
#define HOST_CONSUMER_CAREFUL_COUNT_H

#include "consumer/consumer.h"
#include "consumer/poll.h"
#include "consumer/recorded.h"

/** Whether a message is tried by the page that meets it: one that only waits is
 * not, and one that is recorded or no unit of this consumer neither. */
bool careful_count_tries(struct consumer *consumer,
                         const struct message *message,
                         const struct recorded *recorded);

/** Whether a row is the count of the attempt in hand. Somebody else may have
 * changed it since. */
bool careful_count_is_own(const struct consumer *consumer,
                          const struct undelivered_recorded *row);

/** Queues that the first attempt of a message of a page is counted. */
enum status careful_count_queue(struct consumer *consumer,
                                const struct poll *poll,
                                const struct message *message,
                                struct diag *diag) MUST_CHECK;

/** After the commit of that: it is the attempt in hand. */
void careful_count_keep(struct consumer *consumer, const struct poll *poll,
                        const struct message *message);

/** Both, with the commit. */
enum status careful_count_message(struct consumer *consumer,
                                  const struct poll *poll,
                                  const struct message *message,
                                  struct diag *diag) MUST_CHECK;

/* For consumer/retry.c: a row that is due, alone in its batch. */

/** Says in row->counted whether its attempt is counted already. */
void careful_count_mark(const struct consumer *consumer,
                        struct undelivered_row *row);

/** Queues that it is, for the caller to commit. */
enum status careful_count_row(struct consumer *consumer,
                              const struct undelivered_row *row,
                              struct diag *diag) MUST_CHECK;

#endif
