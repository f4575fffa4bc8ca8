/*
 * Applier -- what a model provides so that consumer/apply.c can run a batch
 * in one processing transaction. The consumer layer owns the transaction,
 * the checkpoints and the undelivered messages; the applier only loads,
 * applies and writes the units it is given.
 *
 * A unit is one message for one key. Per transaction: begin, then apply for
 * each unit in order, then finish, then (after commit or rollback) end.
 */
#ifndef HOST_CONSUMER_APPLIER_H
#define HOST_CONSUMER_APPLIER_H

#include "base/buffer.h"
#include "consumer/failure.h"
#include "consumer/policy.h"
#include "db/db.h"
#include "topic/message.h"

#include <stdbool.h>

struct deadline;             /* consumer/deadline.h */
struct undelivered_recorded; /* consumer/undelivered.h */

struct unit {
    const struct message *message;
    struct text key; /* NULL data: applied without a key */
    int partition;   /* of the key: where it is applied */
    int attempt;     /* from 1 */
    size_t origin;   /* the caller's: which row or message it came from */
    /* its undelivered row, that a page meets; NULL: there is none */
    const struct undelivered_recorded *recorded;
    /* the deadline that is fired; `message` is then its own, `key` the saga's
     * id. NULL: the unit is a message of the topic. */
    const struct deadline *deadline;
};

enum apply_verdict {
    APPLY_DONE,
    APPLY_FAILED, /* *failure says why; its effects are undone */
    APPLY_STUCK,  /* failed, and its effects or another unit's failure are in
                     the transaction: roll back and repeat unit by unit */
};

/** Read models that a rebuild has not made anew. */
struct applier_stale {
    int64_t epoch; /* of the rebuild */
    size_t limit;  /* so many at once */
    /* a consumer's id: only those for which it has undelivered messages in the
     * topic `source`. NULL: all. */
    const char *held_by;
    const char *source;
};

/** Receives a key; its bytes are valid during the call. */
typedef void (*applier_key_fn)(void *arg, struct text key);

struct applier_ops {
    /** Whether what is declared fits what the database holds: asked in a
     * transaction before the first batch, and before it works in partitions
     * that others had. REFUSED: it does not, and nothing must be
     * applied. NULL here: it always does. */
    enum status (*fits)(void *self, struct db *db, struct diag *diag);
    /** Whether a table is one that the consumer says it writes. Without it no
     * message can be applied, and none is to blame. NULL here: it says of none.
     */
    bool (*owns)(void *self, const char *table);
    /** Tells the keys of a message, at the attempt with this number. FAILED
     * with *failure when they cannot be told. */
    enum status (*keys)(void *self, const struct message *message, int attempt,
                        applier_key_fn emit, void *arg,
                        struct failure *failure);
    /** Before begin: whether what is made goes to the topic of the read models
     * as well. NULL here: there are none. */
    void (*topic)(void *self, bool on);
    /** Loads in bulk what the units need. Units are borrowed until end.
     * `replay_epoch` is 0, or the epoch of the rebuild whose replay this is
     * part of: what an older one made counts as absent. */
    enum status (*begin)(void *self, struct db *db, const struct unit *units,
                         size_t count, int64_t replay_epoch, struct diag *diag);
    /** Applies units[index]. A status other than OK is the database's. */
    enum status (*apply)(void *self, struct db *db, size_t index,
                         enum apply_verdict *verdict, struct failure *failure,
                         struct diag *diag);
    /** Queues what the batch changed; statement tags are the applier's, and
     * not negative. FAILED with *failure: some unit left what cannot be
     * written; repeat unit by unit. */
    enum status (*finish)(void *self, struct db *db, struct failure *failure,
                          struct diag *diag);
    /** What the declared function says becomes of a unit's message whose
     * budget is spent. FAILED with *refused: it raised or gave no such word.
     * NULL here: the policy is a word. */
    enum status (*on_error)(void *self, const struct unit *unit, int failures,
                            const struct failure *failure,
                            enum error_policy *policy, struct failure *refused);
    /** Empties what a rebuild fills anew. FAILED with *failure. NULL here:
     * nothing has to be emptied, what is old counts as absent. */
    enum status (*reset)(void *self, struct db *db, struct failure *failure,
                         struct diag *diag);
    /** Queues the delete of read models that a rebuild has not made anew, after
     * the key in `after`, which moves on. *more says whether any were left.
     * NULL here: there are none. */
    enum status (*sweep)(void *self, struct db *db,
                         const struct applier_stale *stale,
                         struct buffer *after, bool *more, struct diag *diag);
    /** Queues the delete of one read model. NULL here: there are none. */
    enum status (*remove)(void *self, struct db *db, struct text key,
                          struct diag *diag);
    /** When the earliest deadline is due that was set since this was asked
     * last, by the clock of consumer/deadline.h, INT64_MAX for none. NULL here:
     * it sets none, and no deadline is ever fired for it. */
    int64_t (*earliest)(void *self);
    /** "script:line" of a queued statement by its tag, or "". */
    const char *(*where)(void *self, int64_t tag);
    void (*end)(void *self);
};

/** Whether a refused statement is the doing of some unit, and not of the
 * database or of another process. */
static inline bool applier_is_fault(enum status status)
{
    return status == STATUS_UNIQUE || status == STATUS_PERMANENT ||
           status == STATUS_INVALID || status == STATUS_LIMIT ||
           status == STATUS_FAILED;
}

struct applier {
    const struct applier_ops *ops;
    void *self;
};

#endif
