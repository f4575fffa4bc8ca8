/*
 * Standing -- where a consumer stands: what memory knows of its checkpoints and
 * of what its undelivered messages hold, taken from the database, and what was
 * reached over empty stretches, brought there. What a batch passes is moved by
 * consumer/apply.h and consumer/flight.h.
 */
#ifndef HOST_CONSUMER_STANDING_H
#define HOST_CONSUMER_STANDING_H

#include "consumer/consumer.h"

/** Takes state, checkpoints and holds into memory, in the caller's transaction.
 * REFUSED as checkpoint_read. */
enum status standing_take(struct consumer *consumer,
                          struct diag *diag) MUST_CHECK;

/** Takes only what is held by undelivered messages, in a transaction of its
 * own. */
enum status standing_read_holds(struct consumer *consumer,
                                struct diag *diag) MUST_CHECK;

/** Whether `other` has the partitions that are held where memory has them. */
bool standing_is_at(const struct consumer *consumer,
                    const struct checkpoints *other);

/** A batch begins: where it stands now is where it stood before that one. */
void standing_begin_page(struct consumer *consumer);

/** Forgets the newest batch, as if its answer had never come (testing kit):
 * memory stands where it stood before, the database does not. */
void standing_forget_last_batch(struct consumer *consumer);

/** Whether something was reached and not saved for long, or not although the
 * topic begins behind what is saved by now. */
bool standing_save_is_due(const struct consumer *consumer, int64_t topic_start);

/** Saves positions that were reached over empty stretches, and ends what is in
 * flight or counted for an attempt that will not be made. Statuses as
 * consumer_step. */
enum status standing_save(struct consumer *consumer,
                          struct diag *diag) MUST_CHECK;

#endif
