/*
 * Apply -- the processing transaction of one page: checkpoints locked and
 * checked, handlers run in position order, what they changed written, the
 * checkpoints moved, commit. All or nothing; a failing message is isolated.
 *
 * First the page is tried as a whole. When something fails that cannot be
 * taken back alone, the transaction rolls back and the page is repeated unit
 * by unit, each under a savepoint: a neighbour is applied twice at most. What
 * only the commit judges (deferred constraints) no savepoint can isolate: then
 * the messages are read one by one.
 */
#ifndef HOST_CONSUMER_APPLY_H
#define HOST_CONSUMER_APPLY_H

#include "consumer/poll.h"

/**
 * Applies consumer->page for the partitions of `poll`. OK also when the
 * consumer turned out to be paused or halted. FENCED when a lease was lost, or
 * its checkpoints were moved by somebody else. On anything but OK nothing was
 * applied (LOST: or all of it was).
 */
enum status apply_page(struct consumer *consumer, const struct poll *poll,
                       struct diag *diag) MUST_CHECK;

/* Shared with consumer/retry.c: the batch of consumer->units under way. What
 * runs its units is in consumer/apply_units.c. */

/** Begins, locks and compares. *run is false when the consumer is paused or
 * halted, or no partition is held; the transaction is then over. */
enum status apply_begin(struct consumer *consumer, bool *run,
                        struct checkpoint_lock *lock,
                        struct diag *diag) MUST_CHECK;

/**
 * Runs consumer->units, all at once or each under a savepoint. A unit whose
 * key is held (in consumer->newly, or in `held`) is passed to `waits`; a
 * failed one to `fails`, which says how its key is held from then on; an
 * applied one to `done`. *repeat asks for a rollback and a repetition with
 * `careful`. When the batch has run for too long, the units of the messages
 * that are left are taken off consumer->units.
 */
struct apply_run {
    bool careful;
    const struct failure *refused; /* not NULL: their commit was refused, so
                                      none is applied and each fails of this */
    const struct undelivered_keys *held; /* may be NULL */
    void (*done)(struct consumer *consumer, void *arg, size_t unit);
    enum key_hold (*fails)(struct consumer *consumer, void *arg, size_t unit,
                           const struct failure *failure);
    void (*waits)(struct consumer *consumer, void *arg, size_t unit,
                  enum key_hold hold);
    /* told when the units were run, before what they write together is sent:
     * what it queues theirs may undo. May be told of a run that is repeated. */
    enum status (*ran)(struct consumer *consumer, void *arg, struct diag *diag);
    void *arg; /* for the four; `done` and `ran` may be NULL */
};
enum status apply_units(struct consumer *consumer, const struct apply_run *run,
                        bool *repeat, struct diag *diag) MUST_CHECK;

/** Whether the batch, which began at consumer->began, has run so long that it
 * ends behind the message in hand: others wait for what it has locked. */
bool apply_is_long(const struct consumer *consumer);

/** Sends what is queued, within the time of a handler call unless it went out
 * unit by unit, and commits. */
enum status apply_commit(struct consumer *consumer, bool careful,
                         struct diag *diag) MUST_CHECK;

/** How far the search for what is refused has come; all zero at first. */
struct apply_search {
    bool careful;                  /* unit by unit now */
    bool split;                    /* good one by one, refused together */
    const struct failure *refused; /* see struct apply_run */
    struct failure failure;        /* that one */
};

/** After an attempt that did not commit: rolls back, and says how to go on.
 * `status` is what it gave, and comes back when there is nothing left to try.
 * `single`: it was about one message, so there is nothing to split.
 * *conflicts counts those in a row, and connections lost in the attempt: a
 * batch that met some comes back with its status and is to be split, a message
 * that met ten alone counts as failed (design 3). The caller sets it to 0 after
 * a commit. */
enum status apply_search_on(struct consumer *consumer,
                            struct apply_search *search, enum status status,
                            bool single, int *conflicts,
                            const struct diag *diag) MUST_CHECK;

/** Before an attempt: after as many lost connections as a message may cost, it
 * has failed, and is not run again. */
void apply_search_resume(struct apply_search *search, int conflicts);

/** Says in the worker's slot that the calls to come are this consumer's, for
 * messages behind `after` (ATTEMPT_RETRY: for undelivered ones). */
void apply_tell_slot(const struct consumer *consumer, int64_t after);

/** Adds a unit to the batch. */
void apply_unit_add(struct consumer *consumer, const struct unit *unit);

/** Adds a row that this transaction records as undelivered. */
void apply_entry_add(struct consumer *consumer,
                     const struct undelivered_entry *entry);

/** Adds a unit that is recorded behind what holds its key. */
void apply_wait_add(struct consumer *consumer, const struct unit *unit,
                    enum key_hold hold);

/** Adds a message that this transaction records as skipped. */
void apply_skip_add(struct consumer *consumer, const struct unit *unit,
                    bool every_key, const struct failure *failure);

/** Queues the entries and the skips of the batch, and the halt when one of
 * them, or the caller, asks for it. */
enum status apply_record(struct consumer *consumer, bool halt,
                         struct diag *diag) MUST_CHECK;

/** After the commit: counts and logs what became of the messages among the
 * entries that failed, and knows when they are tried again. */
void apply_entries_told(struct consumer *consumer);

/** The same for one of them. */
void apply_entry_told(struct consumer *consumer,
                      const struct undelivered_entry *entry);

/** Takes a failure into the memory of the batch. */
const struct failure *apply_keep_failure(struct consumer *consumer,
                                         const struct failure *failure);

/** Logs why a message could not be applied, and what follows from it. */
void apply_log_failure(const struct consumer *consumer,
                       const struct message *message, enum log_level level,
                       const struct failure *failure, const char *follows);

/** Takes what a commit decided into memory. */
void apply_committed(struct consumer *consumer);

#endif
