/*
 * Declared -- what a consumer's declaration does to its state, when it is not
 * the one that its read models were derived with (consumer/fingerprint.h).
 *
 *   nothing stored        it is taken, in silence
 *   code differs          nothing: it applies from now on, and what is stored
 *                         stays, so that status tells of it until a rebuild
 *   anything else differs HALTED with DECLARATION_CHANGED
 *   as before again       a consumer halted so runs on, from a start
 *
 * An operator's word (consumer->takes_over) lets one that runs go on with what
 * it has instead of being halted.
 *
 * With on_change = "rebuild" what differs, and a raised revision, halt it in
 * the same way, and consumer->asks_rebuild says that this process has to
 * rebuild it now. It is not REBUILDING, for a host with the former declaration
 * that meets that state would reset it.
 */
#ifndef HOST_CONSUMER_DECLARED_H
#define HOST_CONSUMER_DECLARED_H

#include "consumer/consumer.h"

/** What was done, to be told once it is committed. */
struct declared_outcome {
    enum {
        DECLARED_NOTHING,
        DECLARED_HALTED,
        DECLARED_RELEASED,
        DECLARED_ACCEPTED,
        DECLARED_REBUILDING,
    } kind;
    struct fingerprint_change change;
};

/** In the caller's transaction, which has read consumer->row; queues the
 * changes and keeps the row's state up to date. Only a consumer that would run
 * is halted; only a start (`starting`) releases one. */
enum status declared_check(struct consumer *consumer, bool starting,
                           struct declared_outcome *outcome,
                           struct diag *diag) MUST_CHECK;

/** Whether a start with this declaration would halt the consumer that now runs
 * by another one; *change says what differs. */
bool declared_halts(const struct consumer_row *row,
                    const struct fingerprint *declared, bool rebuild_on_change,
                    struct fingerprint_change *change);

/**
 * REFUSED when the row, as read now, goes by another declaration since this
 * process has seen it: another one was started, an operator took it over, or
 * it was rebuilt. Then it is this process that has the old one: it must not
 * halt or rebuild what the others run, but stand still.
 */
enum status declared_overtaken(const struct consumer *consumer,
                               const struct consumer_row *row,
                               struct diag *diag) MUST_CHECK;

/**
 * In a transaction of its own: whether the consumer may go on by what this
 * process has loaded, after an operator let it run, it was rebuilt, or another
 * process has worked in its partitions. Takes the row as it is now, and
 * clears consumer->unchecked. Statuses as consumer_step.
 */
enum status declared_check_again(struct consumer *consumer,
                                 struct diag *diag) MUST_CHECK;

/** Says so in the log when the row, as read now, is halted so: it is another
 * host that has done it, and this one would rest without a word. */
void declared_tell_halted(const struct consumer *consumer);

/** Writes the log line that belongs to it, if any. */
void declared_tell(const struct consumer *consumer,
                   const struct declared_outcome *outcome);

#endif
