/*
 * Careful -- how a consumer reads on in partitions that it has taken over from
 * an instance that lapsed. That one may have died of a message, and taken
 * whole hosts along, so that nobody was left to count the attempt
 * (consumer/charge.h). So what is tried is counted, and committed, before. A
 * death has most often other causes, so first a page is counted as a whole
 * (consumer/careful_page.h). Where a count is found that somebody else has
 * left, a second one has died there: then attempts are counted, one message at
 * a time; what goes well takes its count back in the same transaction, which
 * counts the attempt of the next one, too, if that is made in the same step:
 * nothing stays counted while others have their turn, who may end the process.
 * This lasts until the page has been passed that the dead one can have had in
 * hand behind its checkpoint, and what was due to be tried again.
 */
#ifndef HOST_CONSUMER_CAREFUL_H
#define HOST_CONSUMER_CAREFUL_H

#include "consumer/consumer.h"
#include "consumer/poll.h"

/** Whether the next page, of messages up to `upto`, is read so. Partitions that
 * were taken over and others take turns. */
bool careful_take_turn(struct consumer *consumer, int64_t upto);

/** A partition was taken over: from here on, as far as is known later. */
void careful_begin(struct consumer *consumer, int partition);

/** Ends it for partitions that have come so far, or to the mark: behind it the
 * dead one had nothing in hand. */
void careful_settle(struct consumer *consumer, int64_t mark);

/** Whether a page of these partitions is read so. */
bool careful_is_of(const struct consumer *consumer, const struct poll *poll);

/**
 * Before a page of `poll`: takes of it what is to be applied now, all of it or
 * one message, and counts that in a transaction of its own. *go is false when
 * nothing is to be applied now (paused or halted). Statuses as apply_page.
 */
enum status careful_begin_page(struct consumer *consumer,
                               const struct poll *poll, bool *go,
                               struct diag *diag) MUST_CHECK;

/** After a page of `poll` whose transaction has counted the next message: takes
 * that one, which *go says. */
enum status careful_next(struct consumer *consumer, const struct poll *poll,
                         bool *go, struct diag *diag) MUST_CHECK;

/** Up to where page_run must know what is recorded. */
int64_t careful_looks_to(const struct consumer *consumer);

/** Within the transaction of one message, after it: queues the count of the
 * next one if that is to be made in this step. */
enum status careful_count_next(struct consumer *consumer,
                               const struct poll *poll,
                               const struct undelivered_recorded *rows,
                               size_t count, struct diag *diag) MUST_CHECK;

/** Within the transaction that makes the attempt: queues that the count is
 * taken back, and takes it off the rows that were read. What then fails is
 * recorded like any other. */
enum status careful_take_back(struct consumer *consumer,
                              struct undelivered_recorded *rows, size_t *count,
                              struct diag *diag) MUST_CHECK;

/** After the commit of a page. */
void careful_passed(struct consumer *consumer, const struct poll *poll,
                    int64_t through);

/** Before a stop: takes back what was counted for an attempt that will not be
 * made. The count of a retry stays: its row is also what is left of the
 * message. */
enum status careful_end(struct consumer *consumer,
                        struct diag *diag) MUST_CHECK;

/* For consumer/retry.c: a row that is due, alone in its batch. */

/** How many rows were due, for it to end where there are none. */
void careful_saw_due(struct consumer *consumer, size_t count);

/** Whether a row is tried so: it may have been in the dead one's hand, or an
 * attempt of it has ended a process before. */
bool careful_is_of_row(const struct consumer *consumer,
                       const struct undelivered_row *row);

/** After the commit of what was due: nothing is counted before it is made any
 * more. */
void careful_retried(struct consumer *consumer);

#endif
