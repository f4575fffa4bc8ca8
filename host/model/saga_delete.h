/*
 * Saga delete -- takes sagas away with all that is theirs: deadlines, steps,
 * and the row, under the version that was read. What they have staged in the
 * outbox stays. Retention deletes what was completed long ago, an operator any.
 */
#ifndef HOST_MODEL_SAGA_DELETE_H
#define HOST_MODEL_SAGA_DELETE_H

#include "base/arena.h"
#include "consumer/operate.h"
#include "model/saga_step_operate.h"
#include "schema/names.h"

/** A row of SAGA_INSTANCES. */
struct saga_deleted {
    struct uuid id;
    const char *saga_type;
    struct text saga_id;
    int64_t version;
};

/** Deletes the rows, one at least, which are locked, in the caller's
 * transaction. CONFLICT when one of them is not as it was read. */
enum status saga_delete_rows(struct db *db, const struct catalog *catalog,
                             const struct names *names,
                             const struct saga_deleted *rows, size_t count,
                             struct arena *arena, struct diag *diag) MUST_CHECK;

/** What the deletion of one took away. */
struct saga_deletion {
    struct uuid instance;
    bool completed;
    int64_t deadlines, steps;
    int64_t outbox; /* messages not sent that stay; -1: it cannot be told */
};

/**
 * Deletes one saga in a transaction of its own, which waits for the batch in
 * hand of a running host. Without `force` REFUSED when it is under way, or is
 * completed and awaits an answer still. FAILED: there is none. CONFLICT as of
 * any transaction.
 */
enum status saga_delete(const struct operate_env *env,
                        const struct names *names,
                        const struct saga_step_subject *subject, bool force,
                        struct arena *arena, struct saga_deletion *deletion,
                        struct diag *diag) MUST_CHECK;

#endif
