/*
 * Checkpoint -- per consumer, source and partition: every position up to it
 * is done. The rows move inside the processing transaction, so a position is
 * visible exactly when its effects are. This module never begins or commits.
 */
#ifndef HOST_CONSUMER_CHECKPOINT_H
#define HOST_CONSUMER_CHECKPOINT_H

#include "consumer/registry.h"
#include "db/catalog.h"
#include "db/db.h"
#include "partition/leases.h"

#define CHECKPOINT_NONE INT64_C(-1) /* position NULL: nothing read yet */

/** The rows of one consumer and source; index is the partition. */
struct checkpoints {
    int partitions;
    int64_t *position; /* as stored */
};

/** What one locked read of the rows and the consumer's row tells. */
struct checkpoint_lock {
    enum consumer_state state;
    enum halt_reason halt_reason;
    int64_t epoch;
    int64_t replay_through; /* end of the replay of a rebuild, or NONE */
    bool incomplete;        /* went past history that was missing */
    bool undelivered;       /* the consumer has undelivered messages there */
    bool skipped;           /* ... or skipped ones */
    bool topic_on;          /* told by checkpoint_take: of a projection, whether
                               what it makes is appended to its topic */
};

void checkpoints_init(struct checkpoints *checkpoints, int partitions);
void checkpoints_free(struct checkpoints *checkpoints);

/**
 * Locks the rows (until the transaction ends) and reads them into `stored`.
 * REFUSED when rows are missing: the consumer was unsubscribed meanwhile.
 */
enum status checkpoint_lock(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock,
                            struct diag *diag) MUST_CHECK;

/**
 * Locks what a batch is applied under, the leases and the checkpoints of the
 * partitions that are held, and reads these into `stored` (others stay as they
 * are); several may do so side by side, each for its own. *lost is a partition
 * whose lease `instance` holds no more under the generation it knows, or -1:
 * nothing may be applied then.
 */
enum status checkpoint_take(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            const struct leases *leases, const char *instance,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock, int *lost,
                            struct diag *diag) MUST_CHECK;

/** Queues the question whether the consumer still runs in the epoch, with its
 * topic on or off, where checkpoint_take cannot tell for sure; when it does
 * not, the commit is a CONFLICT. Before the batch itself changes the state. */
enum status checkpoint_still(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, int64_t epoch,
                             bool topic_on, struct diag *diag) MUST_CHECK;

/** The same as checkpoint_lock without the lock, in a transaction that may
 * only read. */
enum status checkpoint_read(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock,
                            struct diag *diag) MUST_CHECK;

/** Queues the begin of a replay: positions NULL, the new epoch, and how far it
 * goes (CHECKPOINT_NONE: there is nothing to replay). */
enum status checkpoint_reset(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, const char *source,
                             int64_t epoch, int64_t replay_through,
                             struct diag *diag) MUST_CHECK;

/** Queues the end of the replay. */
enum status checkpoint_replayed(struct db *db, const struct catalog *catalog,
                                const char *consumer_id, const char *source,
                                struct diag *diag) MUST_CHECK;

/** Queues the move of `count` partitions to `position`; each must be lower
 * than that, else the commit is a CONFLICT. */
enum status checkpoint_advance(struct db *db, const struct catalog *catalog,
                               const char *consumer_id, const char *source,
                               const int64_t *partitions, size_t count,
                               int64_t position, struct diag *diag) MUST_CHECK;

#endif
