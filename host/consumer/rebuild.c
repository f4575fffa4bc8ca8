#include "consumer/rebuild.h"

#include "base/hash.h"
#include "consumer/apply.h"
#include "consumer/standing.h"
#include "consumer/transition.h"
#include "consumer/undelivered.h"
#include "topic/high_water_mark.h"

/* Read models that one transaction deletes at most at the end of a replay. */
#define SWEEP_LIMIT 1000

/* How often a process that has read a replay to its end looks whether the
 * others have, too. */
#define FINISH_PAUSE_US (CLOCK_SECOND / 10)

/* Rows of the consumer, locked; what they say goes to `lock` and `highest`,
 * the position that some partition has reached. */
static enum status lock_rows(struct consumer *c, struct checkpoints *stored,
                             struct checkpoint_lock *lock, struct diag *diag)
{
    const struct consumer_env *env = c->env;

    return checkpoint_lock(env->db, env->catalog, c->row.id, c->source, stored,
                           lock, diag);
}

static void fill_result(struct rebuild_result *result,
                        const struct checkpoint_lock *lock)
{
    *result = (struct rebuild_result){
        .was = lock->state,
        .reason = lock->halt_reason,
        .epoch = lock->epoch,
        .replay_through = lock->replay_through,
    };
}

typedef enum status (*locked_fn)(struct consumer *c,
                                 const struct checkpoints *stored,
                                 const struct checkpoint_lock *lock,
                                 struct rebuild_result *result,
                                 struct diag *diag);

/* One transaction that locks the rows, does what `fn` says and commits. */
static enum status locked(struct consumer *c, locked_fn fn,
                          struct rebuild_result *result, struct diag *diag)
{
    struct checkpoint_lock lock = {.epoch = 0};
    struct checkpoints stored;
    enum status status = db_begin(c->env->db, diag);

    if (status != STATUS_OK)
        return status;
    checkpoints_init(&stored, c->stored.partitions);
    status = lock_rows(c, &stored, &lock, diag);
    if (status == STATUS_OK) {
        fill_result(result, &lock);
        status = fn(c, &stored, &lock, result, diag);
    }
    if (status == STATUS_OK && result->changed)
        status = db_commit(c->env->db, NULL, diag);
    else
        db_rollback(c->env->db);
    if (status != STATUS_OK)
        db_rollback(c->env->db);
    checkpoints_free(&stored);
    return status;
}

static enum status set_state(struct consumer *c, enum consumer_state state,
                             struct diag *diag)
{
    return registry_set_state(c->env->db, c->env->catalog, &c->row, state,
                              HALT_NONE, clock_now(c->env->clock), diag);
}

/* Does what the table of transitions says; true when it changes something. */
static enum status move(struct consumer *c, const struct checkpoint_lock *lock,
                        enum operator_verb verb, struct rebuild_result *result,
                        struct diag *diag)
{
    const struct transition *t = transition_find(verb, lock->state,
                                                 lock->halt_reason);

    result->changed = t->kind == TRANSITION_TO;
    result->unchanged = t->text;
    return result->changed ? set_state(c, t->state, diag) : STATUS_OK;
}

static enum status ask(struct consumer *c, const struct checkpoints *stored,
                       const struct checkpoint_lock *lock,
                       struct rebuild_result *result, struct diag *diag)
{
    (void)stored;
    /* a repeat must not throw away what a long replay has done */
    if (lock->replay_through != CHECKPOINT_NONE &&
        (lock->state == CONSUMER_RUNNING || lock->state == CONSUMER_PAUSED)) {
        result->unchanged =
            lock->state == CONSUMER_PAUSED
                ? "is paused in the middle of a rebuild: resumed it replays "
                  "the rest, and --restart begins again and runs"
                : "is being rebuilt already, and replays; --restart begins "
                  "again";
        return STATUS_OK;
    }
    return move(c, lock, OPERATOR_REBUILD, result, diag);
}

static enum status ask_again(struct consumer *c,
                             const struct checkpoints *stored,
                             const struct checkpoint_lock *lock,
                             struct rebuild_result *result, struct diag *diag)
{
    (void)stored;
    return move(c, lock, OPERATOR_REBUILD, result, diag);
}

enum status rebuild_ask(struct consumer *c, bool restart,
                        struct rebuild_result *result, struct diag *diag)
{
    return locked(c, restart ? ask_again : ask, result, diag);
}

/* A message that had halted the consumer before would hold its key with nobody
 * left to try it again: the consumer is not halted any more. */
static enum status move_back(struct consumer *c,
                             const struct checkpoint_lock *lock,
                             struct rebuild_result *result, struct diag *diag)
{
    enum status status = move(c, lock, OPERATOR_REBUILD_CANCEL, result, diag);

    if (status != STATUS_OK || !result->changed)
        return status;
    return undelivered_revive(c->env->db, c->env->catalog, c->row.id, diag);
}

static enum status cancel(struct consumer *c, const struct checkpoints *stored,
                          const struct checkpoint_lock *lock,
                          struct rebuild_result *result, struct diag *diag)
{
    (void)stored;
    if (lock->state == CONSUMER_REBUILDING ||
        lock->replay_through == CHECKPOINT_NONE)
        return move_back(c, lock, result, diag);
    return diag_set(diag, STATUS_REFUSED,
                    "the rebuild of %s '%s' has begun to replay, and its old "
                    "read models are being replaced: let it come to its end, "
                    "or `moontide pause %s` to stop it where it is",
                    c->name.type, c->name.name, c->name.name);
}

enum status rebuild_cancel(struct consumer *c, struct rebuild_result *result,
                           struct diag *diag)
{
    return locked(c, cancel, result, diag);
}

/* --- the reset ------------------------------------------------------------ */

/* As far as any partition was read, or a replay under way has to go. A topic
 * that the consumer has not begun to read is replayed as far as it goes: there
 * may be read models of another topic, or of a former life. */
static enum status end_of_replay(const struct consumer *c,
                                 const struct checkpoints *stored,
                                 const struct checkpoint_lock *lock,
                                 int64_t *end, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct high_water_mark mark;
    enum status status;

    *end = lock->replay_through;
    for (int p = 0; p < stored->partitions; p++)
        if (stored->position[p] > *end)
            *end = stored->position[p];
    if (*end != CHECKPOINT_NONE)
        return STATUS_OK;
    status = high_water_mark_read(env->db, env->catalog, c->source, &mark,
                                  diag);
    if (status == STATUS_OK && mark.end > 0) /* the mark comes to it */
        *end = mark.end;
    return status;
}

/* Without a replay nothing comes to what an older epoch has made. */
static enum status drop_all(struct consumer *c, int64_t epoch,
                            struct diag *diag)
{
    const struct applier_stale stale = {.epoch = epoch, .limit = SWEEP_LIMIT};
    enum status status = STATUS_OK;
    bool more = c->applier.ops->sweep != NULL;

    buffer_clear(&c->swept);
    while (status == STATUS_OK && more) {
        status = c->applier.ops->sweep(c->applier.self, c->env->db, &stale,
                                       &c->swept, &more, diag);
        if (status == STATUS_OK)
            status = db_flush(c->env->db, NULL, diag);
    }
    return status;
}

static enum status empty(struct consumer *c, struct diag *diag)
{
    struct failure failure;
    enum status status;
    int64_t tag = -1;

    if (c->applier.ops->reset == NULL)
        return STATUS_OK;
    status = c->applier.ops->reset(c->applier.self, c->env->db, &failure, diag);
    if (status == STATUS_FAILED)
        return diag_set(diag, STATUS_FAILED, "the reset of '%s' failed: %s",
                        c->name.name, failure.reason);
    if (status == STATUS_OK)
        status = db_flush(c->env->db, &tag, diag);
    if (applier_is_fault(status)) {
        const char *where = tag >= 0
                                ? c->applier.ops->where(c->applier.self, tag)
                                : "";

        failure_set(&failure, false, "sql", "%s%s%s", where,
                    where[0] != '\0' ? ": " : "", diag->message);
        return diag_set(diag, STATUS_FAILED, "the reset of '%s' failed: %s",
                        c->name.name, failure.reason);
    }
    return status;
}

static enum status clear(struct consumer *c, enum sql_statement statement,
                         struct diag *diag)
{
    const struct db_value id = db_string(c->row.id);

    return db_queue(c->env->db, catalog_sql(c->env->catalog, statement), &id, 1,
                    DB_ANY_ROWS, -1, diag);
}

/* A new epoch lies above that of every read model there is, also of those that
 * are left from a consumer of that name that was unsubscribed. */
static enum status next_epoch(struct consumer *c, int64_t known, int64_t *epoch,
                              struct diag *diag)
{
    const struct db_value params[] = {db_string(c->name.name)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(
        c->env->db, catalog_sql(c->env->catalog, SQL_EPOCHS_HIGHEST), params, 1,
        &rows, diag);

    *epoch = known + 1;
    if (status != STATUS_OK)
        return status;
    status = db_next(rows, &more, diag);
    if (status == STATUS_OK && more && !db_is_null(rows, 0) &&
        db_get_int64(rows, 0) >= *epoch)
        *epoch = db_get_int64(rows, 0) + 1;
    db_rows_close(rows);
    return status;
}

static enum status reset_all(struct consumer *c,
                             const struct checkpoints *stored,
                             const struct checkpoint_lock *lock,
                             struct rebuild_result *result, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    int64_t epoch, end;
    enum status status = next_epoch(c, lock->epoch, &epoch, diag);

    if (status == STATUS_OK)
        status = end_of_replay(c, stored, lock, &end, diag);
    if (status != STATUS_OK)
        return status;
    result->changed = true;
    result->epoch = epoch;
    result->replay_through = end;
    /* what it was derived with is compared and replaced under the lock */
    status = registry_read(env->db, env->catalog, &c->name, &c->row, diag);
    if (status == STATUS_OK)
        status = empty(c, diag);
    if (status == STATUS_OK)
        status = clear(c, SQL_SKIPPED_CLEAR, diag);
    if (status == STATUS_OK)
        status = clear(c, SQL_UNDELIVERED_CLEAR, diag);
    if (status == STATUS_OK && end == CHECKPOINT_NONE)
        status = drop_all(c, epoch, diag);
    if (status == STATUS_OK)
        status = checkpoint_reset(env->db, env->catalog, c->row.id, c->source,
                                  epoch, end, diag);
    if (status == STATUS_OK)
        status = registry_rebuilt(env->db, env->catalog, &c->row, epoch,
                                  clock_now(env->clock), diag);
    if (status == STATUS_OK && c->declared != NULL)
        status = registry_fingerprint_rebuild(env->db, env->catalog, &c->row,
                                              c->declared, diag);
    return status;
}

static enum status reset(struct consumer *c, const struct checkpoints *stored,
                         const struct checkpoint_lock *lock,
                         struct rebuild_result *result, struct diag *diag)
{
    if (lock->state != CONSUMER_REBUILDING)
        return STATUS_OK;
    return reset_all(c, stored, lock, result, diag);
}

bool rebuild_is_changed(const struct consumer *c)
{
    struct fingerprint_change change = fingerprint_compare(
        registry_fingerprint(&c->row), c->declared);

    return change.verdict != FINGERPRINT_EQUAL &&
           change.verdict != FINGERPRINT_NEW;
}

static bool is_held(const struct checkpoint_lock *lock)
{
    return lock->state == CONSUMER_HALTED &&
           lock->halt_reason == HALT_DECLARATION_CHANGED;
}

static enum status hold(struct consumer *c, const struct checkpoints *stored,
                        const struct checkpoint_lock *lock,
                        struct rebuild_result *result, struct diag *diag)
{
    (void)stored;
    if (is_held(lock))
        return STATUS_OK;
    result->changed = true;
    return registry_set_state(c->env->db, c->env->catalog, &c->row,
                              CONSUMER_HALTED, HALT_DECLARATION_CHANGED,
                              clock_now(c->env->clock), diag);
}

enum status rebuild_hold(struct consumer *c, struct rebuild_result *result,
                         struct diag *diag)
{
    return locked(c, hold, result, diag);
}

static enum status reset_held(struct consumer *c,
                              const struct checkpoints *stored,
                              const struct checkpoint_lock *lock,
                              struct rebuild_result *result, struct diag *diag)
{
    if (!is_held(lock))
        return STATUS_OK;
    return reset_all(c, stored, lock, result, diag);
}

/* Whoever was first has reset it already. */
static enum status reset_changed(struct consumer *c,
                                 const struct checkpoints *stored,
                                 const struct checkpoint_lock *lock,
                                 struct rebuild_result *result,
                                 struct diag *diag)
{
    const struct consumer_env *env = c->env;
    enum status status = registry_read(env->db, env->catalog, &c->name, &c->row,
                                       diag);

    if (status != STATUS_OK || !rebuild_is_changed(c))
        return status;
    return reset_all(c, stored, lock, result, diag);
}

static enum status run_reset(struct consumer *c, locked_fn fn,
                             struct rebuild_result *result, struct diag *diag)
{
    enum status status = locked(c, fn, result, diag);

    c->applier.ops->end(c->applier.self);
    if (status == STATUS_OK)
        status = consumer_reload(c, diag);
    return status;
}

enum status rebuild_reset(struct consumer *c, struct rebuild_result *result,
                          struct diag *diag)
{
    return run_reset(c, reset, result, diag);
}

enum status rebuild_reset_held(struct consumer *c,
                               struct rebuild_result *result, struct diag *diag)
{
    return run_reset(c, reset_held, result, diag);
}

enum status rebuild_reset_changed(struct consumer *c,
                                  struct rebuild_result *result,
                                  struct diag *diag)
{
    return run_reset(c, reset_changed, result, diag);
}

/* --- the end of a replay -------------------------------------------------- */

bool rebuild_is_read(const struct consumer *c)
{
    if (c->replay_through == CHECKPOINT_NONE)
        return false;
    for (size_t i = 0; i < c->leases.count; i++)
        if (c->reached.position[c->leases.mine[i]] < c->replay_through)
            return false;
    return true;
}

/* The same of every partition, as stored; else somebody reads on, or has ended
 * the replay, or has begun another. */
static bool all_have_read(const struct consumer *c,
                          const struct checkpoints *stored,
                          const struct checkpoint_lock *lock)
{
    if (lock->state != CONSUMER_RUNNING || lock->epoch != c->row.epoch ||
        lock->replay_through != c->replay_through)
        return false;
    for (int p = 0; p < stored->partitions; p++)
        if (stored->position[p] < c->replay_through)
            return false;
    return true;
}

static enum status sweep(struct consumer *c, bool *more, struct diag *diag)
{
    struct applier_stale stale = {
        .epoch = c->row.epoch,
        .limit = SWEEP_LIMIT,
    };

    *more = false;
    if (c->applier.ops->sweep == NULL)
        return STATUS_OK;
    /* What was derived from history that is gone cannot be made anew. Where the
     * replay has come to a read model its retry begins it anew, as always: the
     * old one holds that message already. */
    if (c->incomplete) {
        stale.held_by = c->row.id;
        stale.source = c->source;
    }
    return c->applier.ops->sweep(c->applier.self, c->env->db, &stale, &c->swept,
                                 more, diag);
}

/* Under the lock of all partitions nobody is in a batch, and of several who see
 * the end one comes after the other. */
static enum status finish(struct consumer *c, bool *read, bool *more,
                          struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    struct checkpoints stored;
    enum status status;

    *read = *more = false;
    checkpoints_init(&stored, c->stored.partitions);
    status = lock_rows(c, &stored, &lock, diag);
    *read = status == STATUS_OK && all_have_read(c, &stored, &lock);
    checkpoints_free(&stored);
    if (!*read)
        return status;
    c->incomplete = lock.incomplete; /* another process may have met the gap */
    status = sweep(c, more, diag);
    if (status == STATUS_OK && !*more)
        status = checkpoint_replayed(env->db, env->catalog, c->row.id,
                                     c->source, diag);
    return status;
}

/* Others are asked now and then, and what they have done is taken over. */
static enum status await_others(struct consumer *c, bool *read,
                                struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    struct checkpoints stored;
    enum status status;

    *read = leases_hold_all(&c->leases);
    if (*read || consumer_time(env) < c->finish_at)
        return STATUS_OK;
    checkpoints_init(&stored, c->stored.partitions);
    status = db_begin(env->db, diag);
    if (status == STATUS_OK)
        status = checkpoint_read(env->db, env->catalog, c->row.id, c->source,
                                 &stored, &lock, diag);
    db_rollback(env->db);
    *read = status == STATUS_OK && all_have_read(c, &stored, &lock);
    checkpoints_free(&stored);
    if (status != STATUS_OK || *read)
        return status;
    if (lock.epoch != c->row.epoch || lock.replay_through != c->replay_through)
        return consumer_reload(c, diag);
    c->finish_at = consumer_time(env) + FINISH_PAUSE_US;
    return STATUS_OK;
}

static enum status finish_step(struct consumer *c, bool *more,
                               struct diag *diag)
{
    bool read = false;
    enum status status = db_begin(c->env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = finish(c, &read, more, diag);
    if (status == STATUS_OK && read)
        status = db_commit(c->env->db, NULL, diag);
    db_rollback(c->env->db);
    c->applier.ops->end(c->applier.self);
    if (status != STATUS_OK)
        return status;
    if (!read) {
        *more = true;
        return consumer_reload(c, diag);
    }
    return STATUS_OK;
}

enum status rebuild_finish(struct consumer *c, bool *worked, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    bool read, more;
    enum status status = standing_save(c, diag);

    *worked = false;
    if (status != STATUS_OK || c->row.state != CONSUMER_RUNNING ||
        !rebuild_is_read(c))
        return status;
    status = await_others(c, &read, diag);
    if (status != STATUS_OK || !read)
        return status;
    *worked = true;
    status = finish_step(c, &more, diag);
    if (status != STATUS_OK || more)
        return status;
    c->replay_through = CHECKPOINT_NONE;
    buffer_clear(&c->swept);
    log_write(env->log, LOG_INFO,
              &(struct log_about){.consumer = c->name.name, .topic = c->source},
              "rebuilt, epoch %lld", (long long)c->row.epoch);
    return STATUS_OK;
}
