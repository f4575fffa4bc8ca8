/*
 * Rebuild -- derives what a consumer keeps anew from the topic's history, in
 * place (design 3, "Declarations and rebuild").
 *
 * Asked for, it is a state of the consumer (REBUILDING) that stops every host
 * with the next batch. Then its progress is reset in one transaction, by
 * whoever comes first: epoch + 1, checkpoints back to nothing, undelivered and
 * skipped messages gone. From there on it runs as ever, and `replay_through`
 * of its checkpoints says that it replays: read models of older epochs count
 * as absent, and when the replay has reached its end those that were not made
 * anew are deleted. Each step is a transaction, so a crash resumes at it.
 */
#ifndef HOST_CONSUMER_REBUILD_H
#define HOST_CONSUMER_REBUILD_H

#include "consumer/consumer.h"

/** What a verb found and did. */
struct rebuild_result {
    bool changed;            /* false: it was so already */
    const char *unchanged;   /* why; follows the consumer's name */
    enum consumer_state was; /* state before */
    enum halt_reason reason; /* of that state */
    int64_t epoch;           /* of the consumer now */
    int64_t replay_through;  /* end of the replay, or NONE */
};

/** Asks for a rebuild: state REBUILDING. One that replays already is left
 * alone, unless `restart` says that it begins again. */
enum status rebuild_ask(struct consumer *consumer, bool restart,
                        struct rebuild_result *result,
                        struct diag *diag) MUST_CHECK;

/** Takes the question back, as long as the progress was not reset. REFUSED
 * once it was: what is there is a part of the new read models, and only the
 * end of the replay makes it whole. */
enum status rebuild_cancel(struct consumer *consumer,
                           struct rebuild_result *result,
                           struct diag *diag) MUST_CHECK;

/**
 * Resets the progress of a consumer that is REBUILDING; result->changed is
 * false when it is not (any more). Then the consumer reads where it stands.
 * FAILED: its `reset` did, and nothing has changed.
 */
enum status rebuild_reset(struct consumer *consumer,
                          struct rebuild_result *result,
                          struct diag *diag) MUST_CHECK;

/** Whether the consumer's row tells of another declaration than is loaded. */
bool rebuild_is_changed(const struct consumer *consumer);

/**
 * The rebuild by another declaration, in one transaction: resets the progress
 * whatever the state is, and stores what is declared now, so that hosts which
 * still have the former declaration stand still. result->changed is false when
 * somebody else has just done it. FAILED: its `reset` did, and nothing has
 * changed.
 */
enum status rebuild_reset_changed(struct consumer *consumer,
                                  struct rebuild_result *result,
                                  struct diag *diag) MUST_CHECK;

/**
 * The same where the table is made anew in between: halts the consumer with
 * DECLARATION_CHANGED, which it then is until rebuild_reset_held has reset its
 * progress. result->changed is false when somebody else has let it run. A crash
 * in between leaves it halted, and doing both again goes on.
 */
enum status rebuild_hold(struct consumer *consumer,
                         struct rebuild_result *result,
                         struct diag *diag) MUST_CHECK;
enum status rebuild_reset_held(struct consumer *consumer,
                               struct rebuild_result *result,
                               struct diag *diag) MUST_CHECK;

/** Whether the replay has been read to its end in the partitions that are held,
 * and rebuild_finish has to follow. */
bool rebuild_is_read(const struct consumer *consumer);

/** One step of the end of a replay, once it was read to its end in every
 * partition, whoever holds it: deletes some read models that were not made
 * anew, or, when none is left, ends it. *worked is false while others have
 * something left to read. */
enum status rebuild_finish(struct consumer *consumer, bool *worked,
                           struct diag *diag) MUST_CHECK;

#endif
