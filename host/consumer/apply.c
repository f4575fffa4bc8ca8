#include "consumer/apply.h"

#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>

/* --- the batch ------------------------------------------------------------ */

void apply_unit_add(struct consumer *c, const struct unit *unit)
{
    if (c->nunits == c->units_capacity) {
        c->units_capacity = c->units_capacity == 0 ? 512 : 2 * c->nunits;
        c->units = mem_grow(c->units, c->units_capacity, sizeof(*c->units));
    }
    c->units[c->nunits++] = *unit;
}

void apply_entry_add(struct consumer *c, const struct undelivered_entry *entry)
{
    if (c->nentries == c->entries_capacity) {
        c->entries_capacity = c->entries_capacity == 0 ? 16 : 2 * c->nentries;
        c->entries = mem_grow(c->entries, c->entries_capacity,
                              sizeof(*c->entries));
    }
    c->entries[c->nentries++] = *entry;
}

const struct failure *apply_keep_failure(struct consumer *c,
                                         const struct failure *failure)
{
    struct failure *copy = arena_alloc(&c->arena, sizeof(*copy));

    *copy = *failure;
    return copy;
}

void apply_log_failure(const struct consumer *c, const struct message *message,
                       const struct failure *failure)
{
    char id[UUID_TEXT_LEN + 1];
    const struct log_about about = {
        .consumer = c->name.name,
        .topic = c->source,
        .position = message->position,
        .message_id = id,
    };

    uuid_format(&message->id, id);
    log_write(c->env->log, LOG_ERROR, &about, "could not apply %.*s: %s",
              TEXT_ARGS(message->type), failure->reason);
}

void apply_entries_told(struct consumer *c)
{
    for (size_t i = 0; i < c->nentries; i++) {
        const struct undelivered_entry *e = &c->entries[i];

        /* without keys it lies in every partition: told once */
        if (e->status != UNDELIVERED_HALTED ||
            (i > 0 && e->unresolved && e->message == e[-1].message))
            continue;
        c->failed++;
        apply_log_failure(c, e->message, e->failure);
    }
}

/* --- units: all at once, or one by one ------------------------------------ */

bool apply_is_fault(enum status status)
{
    return status == STATUS_UNIQUE || status == STATUS_PERMANENT ||
           status == STATUS_INVALID || status == STATUS_LIMIT ||
           status == STATUS_FAILED;
}

void apply_refused(struct consumer *c, int64_t tag, const struct diag *diag,
                   struct failure *failure)
{
    const char *where = tag >= 0 ? c->applier.ops->where(c->applier.self, tag)
                                 : "";
    const char *class = diag->status == STATUS_UNIQUE   ? "unique"
                        : diag->status == STATUS_FAILED ? "timeout"
                                                        : "sql";

    failure_set(failure, false, class, "%s%s%s", where,
                where[0] != '\0' ? ": " : "", diag->message);
}

static void unit_failed(struct consumer *c, const struct apply_run *run,
                        size_t unit, const struct failure *failure)
{
    undelivered_keys_hold(&c->held, c->units[unit].key);
    run->fails(c, run->arg, unit, failure);
}

static void unit_done(struct consumer *c, const struct apply_run *run,
                      size_t unit)
{
    if (run->done != NULL)
        run->done(c, run->arg, unit, NULL);
}

/* True when the unit has to wait, and was told so. */
static bool unit_waits(struct consumer *c, const struct apply_run *run,
                       size_t unit)
{
    if (!undelivered_keys_held(&c->held, c->units[unit].key))
        return false;
    run->waits(c, run->arg, unit, NULL);
    return true;
}

/* The batch as a whole: one load, one write. Undoes nothing itself. */
static enum status run_together(struct consumer *c, const struct apply_run *run,
                                bool *repeat, struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    void *self = c->applier.self;
    struct failure failure;
    enum status status;

    status = ops->begin(self, c->env->db, c->units, c->nunits, false, diag);
    for (size_t i = 0; status == STATUS_OK && i < c->nunits; i++) {
        enum apply_verdict verdict = APPLY_DONE;

        if (unit_waits(c, run, i))
            continue;
        status = ops->apply(self, c->env->db, i, &verdict, &failure, diag);
        if (status == STATUS_OK && verdict == APPLY_STUCK) {
            *repeat = true;
            return STATUS_OK;
        }
        if (status == STATUS_OK && verdict == APPLY_FAILED)
            unit_failed(c, run, i, &failure);
        else if (status == STATUS_OK)
            unit_done(c, run, i);
    }
    if (status == STATUS_OK)
        status = ops->finish(self, c->env->db, &failure, diag);
    if (apply_is_fault(status)) {
        *repeat = true; /* some unit's doing: find out which */
        return STATUS_OK;
    }
    return status;
}

/* Queued statements are part of the handler's time: in SQL, too, nothing may
 * run for ever while it holds the database. */
static enum status flush_in_time(struct consumer *c, int64_t *tag,
                                 struct diag *diag)
{
    struct db *db = c->env->db;
    enum status status;

    db_deadline(db, clock_monotonic() + c->env->time_limit);
    status = db_flush(db, tag, diag);
    db_deadline(db, 0);
    return status;
}

enum status apply_commit(struct consumer *c, bool careful, struct diag *diag)
{
    /* unit by unit everything was sent under a limit of its own */
    enum status status = careful ? STATUS_OK : flush_in_time(c, NULL, diag);

    return status == STATUS_OK ? db_commit(c->env->db, NULL, diag) : status;
}

/* One unit under its own savepoint: its failure is certainly its own. */
static enum status run_alone(struct consumer *c, size_t unit,
                             enum apply_verdict *verdict,
                             struct failure *failure, struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    void *self = c->applier.self;
    struct db *db = c->env->db;
    int64_t tag = -1;
    enum status status, undone;

    *verdict = APPLY_DONE;
    status = db_savepoint(db, diag);
    if (status != STATUS_OK)
        return status;
    status = ops->begin(self, db, &c->units[unit], 1, false, diag);
    if (status == STATUS_OK)
        status = ops->apply(self, db, 0, verdict, failure, diag);
    if (status == STATUS_OK && *verdict == APPLY_DONE)
        status = ops->finish(self, db, failure, diag);
    if (status == STATUS_FAILED) { /* finish: *failure is set */
        *verdict = APPLY_FAILED;
        status = STATUS_OK;
    }
    if (status == STATUS_OK && *verdict == APPLY_DONE)
        status = flush_in_time(c, &tag, diag);
    if (apply_is_fault(status)) {
        apply_refused(c, tag, diag, failure);
        *verdict = APPLY_FAILED;
        status = STATUS_OK;
    }
    ops->end(self);
    if (status != STATUS_OK)
        return status;
    if (*verdict == APPLY_DONE)
        return db_release(db, diag);
    *verdict = APPLY_FAILED;
    undone = db_rollback_to(db, diag);
    return undone;
}

enum status apply_units(struct consumer *c, const struct apply_run *run,
                        bool *repeat, struct diag *diag)
{
    enum status status = STATUS_OK;

    *repeat = false;
    if (c->nunits == 0)
        return STATUS_OK;
    if (!run->careful && run->refused == NULL)
        return run_together(c, run, repeat, diag);
    for (size_t i = 0; status == STATUS_OK && i < c->nunits; i++) {
        enum apply_verdict verdict;
        struct failure failure;

        if (unit_waits(c, run, i))
            continue;
        if (run->refused != NULL) {
            unit_failed(c, run, i, run->refused);
            continue;
        }
        status = run_alone(c, i, &verdict, &failure, diag);
        if (status == STATUS_OK && verdict == APPLY_FAILED)
            unit_failed(c, run, i, &failure);
        else if (status == STATUS_OK)
            unit_done(c, run, i);
    }
    return status;
}

/* --- the transaction ------------------------------------------------------ */

enum status apply_begin(struct consumer *c, bool *run,
                        struct checkpoint_lock *lock, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoints stored;
    enum status status;

    *run = false;
    status = db_begin(env->db, diag);
    if (status != STATUS_OK)
        return status;
    checkpoints_init(&stored, c->stored.partitions);
    status = checkpoint_lock(env->db, env->catalog, c->row.id, c->source,
                             &stored, lock, diag);
    if (status == STATUS_OK &&
        memcmp(stored.position, c->stored.position,
               (size_t)stored.partitions * sizeof(*stored.position)) != 0)
        status = diag_set(diag, STATUS_FENCED,
                          "the checkpoints of '%s' were moved by another "
                          "process: only one may run on this database",
                          c->name.name);
    checkpoints_free(&stored);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    c->row.state = lock->state;
    c->row.halt_reason = lock->halt_reason;
    if (lock->state == CONSUMER_PAUSED || lock->state == CONSUMER_HALTED) {
        db_rollback(env->db);
        return STATUS_OK;
    }
    *run = true;
    return STATUS_OK;
}

enum status apply_halt(struct consumer *c, struct diag *diag)
{
    c->row.state = CONSUMER_HALTED;
    c->row.halt_reason = HALT_APPLY_ERROR;
    return registry_set_state(c->env->db, c->env->catalog, &c->row,
                              CONSUMER_HALTED, HALT_APPLY_ERROR,
                              clock_now(c->env->clock), diag);
}

void apply_committed(struct consumer *c)
{
    c->saved_at = consumer_time(c->env);
    if (c->row.state == CONSUMER_HALTED)
        log_write(
            c->env->log, LOG_ERROR,
            &(struct log_about){.consumer = c->name.name, .topic = c->source},
            "halted with %s: fix the handler and start again, which "
            "tries the message again",
            halt_reason_word(c->row.halt_reason));
}

/* --- a page ----------------------------------------------------------------
 */

struct key_sink {
    struct consumer *consumer;
    const struct message *message;
    const struct poll *poll;
    const struct checkpoint_lock *lock;
};

static bool polled(const struct poll *poll, int partition)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        if (poll->partitions[i] == partition)
            return true;
    return false;
}

static void take_key(void *arg, struct text key)
{
    const struct key_sink *sink = arg;
    struct consumer *c = sink->consumer;
    int partition = hash_partition(key, c->env->partitions);

    if (!polled(sink->poll, partition))
        return;
    if (sink->lock->skipped &&
        skips_hold(&c->skips, sink->message->position, key))
        return;
    apply_unit_add(c, &(struct unit){
                          .message = sink->message,
                          .key = arena_copy(&c->arena, key),
                          .partition = partition,
                          .attempt = 1,
                      });
}

/* Later messages of a held key wait behind it, in position order. */
static void page_unit_waits(struct consumer *c, void *arg, size_t unit,
                            const struct failure *failure)
{
    const struct unit *u = &c->units[unit];

    (void)arg;
    (void)failure;
    apply_entry_add(c, &(struct undelivered_entry){
                           .message = u->message,
                           .key = u->key,
                           .partition = u->partition,
                           .status = UNDELIVERED_WAITING,
                       });
}

/* The default policy: the message halts its consumer, and its key waits. */
static void page_unit_fails(struct consumer *c, void *arg, size_t unit,
                            const struct failure *failure)
{
    const struct unit *u = &c->units[unit];

    (void)arg;
    apply_entry_add(c, &(struct undelivered_entry){
                           .message = u->message,
                           .key = u->key,
                           .partition = u->partition,
                           .status = UNDELIVERED_HALTED,
                           .failure_count = 1,
                           .failure = apply_keep_failure(c, failure),
                       });
}

/* A message whose keys cannot be told: recorded in every partition that met
 * it, and the page ends there. */
static void page_unresolved(struct consumer *c, const struct message *message,
                            const struct poll *poll,
                            const struct failure *failure)
{
    const struct failure *kept = apply_keep_failure(c, failure);

    for (size_t i = 0; i < poll->npartitions; i++)
        apply_entry_add(c, &(struct undelivered_entry){
                               .message = message,
                               .key = TEXT_NONE,
                               .partition = (int)poll->partitions[i],
                               .status = UNDELIVERED_HALTED,
                               .failure_count = 1,
                               .failure = kept,
                               .unresolved = true,
                           });
}

/* Turns the page into units. *through is where the checkpoints may go. */
static enum status page_units(struct consumer *c, const struct poll *poll,
                              const struct checkpoint_lock *lock,
                              int64_t *through, struct diag *diag)
{
    struct key_sink sink = {.consumer = c, .poll = poll, .lock = lock};
    struct failure failure;
    enum status status;

    *through = c->page.through;
    for (size_t i = 0; i < c->page.count; i++) {
        const struct message *m = &c->page.messages[i];

        if (lock->skipped && skips_hold(&c->skips, m->position, TEXT_NONE))
            continue;
        if (!c->own_key) {
            if (!lock->skipped || !skips_hold(&c->skips, m->position, m->key))
                apply_unit_add(c, &(struct unit){
                                      .message = m,
                                      .key = m->key,
                                      .partition = m->partition,
                                      .attempt = 1,
                                  });
            continue;
        }
        sink.message = m;
        status = c->applier.ops->keys(c->applier.self, m, take_key, &sink,
                                      &failure);
        if (status == STATUS_FAILED) {
            page_unresolved(c, m, poll, &failure);
            *through = m->position;
            return STATUS_OK;
        }
        if (status != STATUS_OK)
            return diag_set(diag, status, "%s", failure.reason);
    }
    return STATUS_OK;
}

static bool any_halted(const struct consumer *c)
{
    for (size_t i = 0; i < c->nentries; i++)
        if (c->entries[i].status == UNDELIVERED_HALTED)
            return true;
    return false;
}

/* Everything of the page but begin and the end of the transaction. */
static enum status page_run(struct consumer *c, const struct poll *poll,
                            const struct checkpoint_lock *lock, bool careful,
                            const struct failure *refused, bool *repeat,
                            int64_t *through, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct apply_run run = {
        .careful = careful,
        .refused = refused,
        .fails = page_unit_fails,
        .waits = page_unit_waits,
    };
    enum status status = STATUS_OK;

    c->nunits = c->nentries = 0;
    undelivered_keys_clear(&c->held);
    *repeat = false;
    if (lock->undelivered)
        status = undelivered_keys_read(env->db, env->catalog, c->row.id,
                                       c->source, &c->held, diag);
    if (status == STATUS_OK && lock->skipped)
        status = skips_read(env->db, env->catalog, c->row.id, c->source,
                            poll->after, c->page.through, &c->skips, diag);
    if (status == STATUS_OK && c->held.unresolved)
        return diag_set(diag, STATUS_BUSY,
                        "'%s' waits for a message whose key is unknown",
                        c->name.name);
    if (status == STATUS_OK)
        status = page_units(c, poll, lock, through, diag);
    if (status == STATUS_OK)
        status = apply_units(c, &run, repeat, diag);
    if (status != STATUS_OK || *repeat)
        return status;

    status = undelivered_record(env->db, env->names, c->row.id, c->source,
                                c->entries, c->nentries, env->ids,
                                clock_now(env->clock), &c->arena, diag);
    if (status == STATUS_OK && any_halted(c))
        status = apply_halt(c, diag);
    if (status == STATUS_OK)
        status = checkpoint_advance(env->db, env->catalog, c->row.id, c->source,
                                    poll->partitions, poll->npartitions,
                                    *through, diag);
    return status;
}

/* Only a known commit moves memory. */
static void page_committed(struct consumer *c, const struct poll *poll,
                           int64_t through)
{
    for (size_t i = 0; i < poll->npartitions; i++) {
        c->stored.position[poll->partitions[i]] = through;
        c->reached.position[poll->partitions[i]] = through;
    }
    for (size_t i = 0; i < c->page.count; i++)
        c->applied += c->page.messages[i].position <= through;
    c->singly -= c->page.count < c->singly ? c->page.count : c->singly;
    apply_entries_told(c);
    apply_committed(c);
}

enum status apply_page(struct consumer *c, const struct poll *poll,
                       struct diag *diag)
{
    struct failure failure;
    const struct failure *refused = NULL;
    bool careful = false;

    for (;;) {
        struct checkpoint_lock lock = {.epoch = 0};
        int64_t through = c->page.through;
        bool run, repeat;
        enum status status = apply_begin(c, &run, &lock, diag);

        if (status != STATUS_OK || !run)
            return status;
        status = page_run(c, poll, &lock, careful, refused, &repeat, &through,
                          diag);
        if (status == STATUS_OK && !repeat)
            status = apply_commit(c, careful, diag);
        c->applier.ops->end(c->applier.self);
        if (status == STATUS_OK && !repeat) {
            page_committed(c, poll, through);
            return STATUS_OK;
        }
        db_rollback(c->env->db);
        c->row.state = CONSUMER_RUNNING;
        c->row.halt_reason = HALT_NONE;
        if (status != STATUS_OK && (!apply_is_fault(status) || refused != NULL))
            return status;
        if (!careful) {
            careful = true;
            continue;
        }
        /* each unit was good alone, so it is the commit that refused */
        assert(!repeat);
        if (c->page.count > 1) {
            c->singly = c->page.count;
            return STATUS_OK;
        }
        apply_refused(c, -1, diag, &failure);
        refused = &failure;
    }
}
