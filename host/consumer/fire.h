/*
 * Fire -- the turn of a saga's consumer in which deadlines that are due are
 * fired, many per transaction, under the same lease, lock and isolation as a
 * page (consumer/apply.h): a deadline is a unit without a message of the topic.
 * So a saga's events and its deadlines have one writer.
 *
 * When to look is known without asking: the earliest due time of what this
 * process has set, and of what it found at its last look. What it holds newly
 * is looked at at once; what an operator changed is told by fire_told.
 */
#ifndef HOST_CONSUMER_FIRE_H
#define HOST_CONSUMER_FIRE_H

#include "consumer/consumer.h"

/** Whether it fires deadlines at all. */
static inline bool fire_can(const struct consumer *consumer)
{
    return consumer->applier.ops->earliest != NULL;
}

/** Looks with the next step: after a start, new leases, or a lost connection.
 */
void fire_look_now(struct consumer *consumer);

/** A partition was taken over from an instance that lapsed: it may have died of
 * what was due there. */
void fire_careful(struct consumer *consumer);

/** Takes what the applier has set into account; after each step. */
void fire_note(struct consumer *consumer);

/** Somebody found out that one is due at this time, by the clock of
 * consumer/deadline.h. */
void fire_told(struct consumer *consumer, int64_t due_at);

/** Microseconds until something is due, 0 or less when it is, INT64_MAX when
 * nothing is known to be. */
int64_t fire_left(const struct consumer *consumer);

/**
 * Whether this step fires: something is due, and the messages that were there
 * when that was found have been applied; an answer that came in time, while the
 * host was down, is not overtaken by its own time-out. *waits: it is due and
 * waits for a mark that is behind the topic's end, for a moment.
 */
bool fire_may(struct consumer *consumer, const struct high_water_mark *mark,
              bool *waits);

/** One transaction. *worked is false when nothing was due. Statuses as
 * consumer_step. */
enum status fire_due(struct consumer *consumer, bool *worked,
                     struct diag *diag) MUST_CHECK;

/** Before a stop: takes back what was counted for an attempt that will not be
 * made. */
enum status fire_end(struct consumer *consumer, struct diag *diag) MUST_CHECK;

#endif
