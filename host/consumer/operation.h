/*
 * Operation -- the transaction under an operator's verb: the consumer is found
 * by its name, its checkpoints are locked, the verb does its work, commit; and
 * all of it again when it met another transaction.
 */
#ifndef HOST_CONSUMER_OPERATION_H
#define HOST_CONSUMER_OPERATION_H

#include "consumer/operate.h"
#include "consumer/transition.h"

/** One source that a consumer reads. */
struct operation_source {
    const char *name;
    int64_t lowest; /* of its checkpoints, CHECKPOINT_NONE counts as 0 */
};

struct operation {
    const struct operate_env *env;
    struct arena arena; /* of one attempt */
    bool left_first;    /* of several of one name one that none declares */
    const char *type;
    const char *name;
    struct consumer_row row; /* read under the lock */
    struct operation_source *sources;
    size_t nsources;
};

/* Rows that one transaction changes: what it holds in memory, and how long a
 * host waits for it, does not grow with how many there are. */
#define OPERATION_ROWS INT64_C(1000)

typedef enum status (*operation_fn)(struct operation *operation, void *arg,
                                    struct diag *diag);

/** Runs `fn` in a transaction with `consumer` found and locked; NULL: `fn`
 * locks what it needs. STOPPED, and nothing is begun, when env->stop is set. It
 * may run more than once, each time anew. Of several consumers of one name it
 * is one that is declared, or with `left_first` one that is not. */
enum status operation_run(const struct operate_env *env, const char *consumer,
                          bool left_first, operation_fn fn, void *arg,
                          struct diag *diag) MUST_CHECK;

/** Runs `fn` in a view of its own: it only reads, and locks nothing. */
enum status operation_look(const struct operate_env *env, operation_fn fn,
                           void *arg, struct diag *diag) MUST_CHECK;

/** Adds to the failure of a verb in several transactions what was done before
 * it and stays, as in "1000 messages were retried". Returns its status. */
enum status operation_tell_done(int64_t count, const char *done,
                                struct diag *diag);

/** Finds a consumer by its name: type, name and row.id are filled. One that is
 * declared but was never run has an empty id. USAGE with the nearest name. */
enum status operation_find(struct operation *operation, const char *consumer,
                           struct diag *diag) MUST_CHECK;

/** Locks the checkpoints of a consumer by its id and notes its sources. */
enum status operation_lock(struct operation *operation, const char *consumer_id,
                           struct diag *diag) MUST_CHECK;

/** Whether a script declares the consumer: also when nobody knows. */
bool operation_is_declared(const struct operation *operation);

#endif
