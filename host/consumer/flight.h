/*
 * Flight -- a batch whose COMMIT was sent and is not answered yet. While the
 * database writes it, the next page is folded, of the same consumer or of
 * another one on the connection.
 *
 * Its transaction did not look before it wrote: one statement in it moves the
 * checkpoints if they stand where memory has them, the leases are held, the
 * consumer runs, messages are undelivered or not as memory has it, none of
 * these is the page's own, none is skipped, and its topic is on or off as
 * memory has that, and fails otherwise. Memory is ahead of the database until
 * the answer, and goes back when that is a failure; then the page is read again
 * and applied as consumer/apply.h says. Messages that wait behind what is
 * undelivered go along; a failure of one that is to be told does not.
 */
#ifndef HOST_CONSUMER_FLIGHT_H
#define HOST_CONSUMER_FLIGHT_H

#include "consumer/consumer.h"
#include "consumer/poll.h"

/** One for a connection, all zero at first. Fields are for flight.c. */
struct flight {
    struct consumer *owner; /* NULL: nothing is in flight */
    int64_t stored;         /* where every checkpoint stood before it */
    int64_t after;          /* ... and how far it had been read in memory */
    size_t messages;        /* passed by it */
    size_t page;            /* messages of its page */
    int64_t sent_at;        /* monotonic */
};

/** Whether the page of `poll` may be applied without a look before. */
bool flight_may(const struct consumer *consumer, const struct poll *poll);

/** Queues the statement that moves the checkpoints; first in the transaction.
 */
enum status flight_pass(struct consumer *consumer, int64_t through,
                        struct diag *diag) MUST_CHECK;

/** Commits without waiting, and moves memory. Nothing else may be in flight.
 * On anything but OK the transaction is over and nothing was moved. */
enum status flight_send(struct consumer *consumer, const struct poll *poll,
                        int64_t through, struct diag *diag) MUST_CHECK;

/**
 * Waits for the answer of what is in flight, if anything is. *undone tells
 * that it failed and its consumer, who knows by now, is to apply the page
 * again; a transaction that was begun since is doomed. Anything but OK is the
 * connection's trouble.
 */
enum status flight_settle(struct flight *flight, bool *undone,
                          struct diag *diag) MUST_CHECK;

/** Whether a batch of this consumer is in flight. */
bool flight_is_of(const struct consumer *consumer);

#endif
