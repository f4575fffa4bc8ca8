#include "consumer/apply.h"

#include "base/memory.h"
#include "consumer/attempt_slot.h"

#include <assert.h>
#include <stdio.h>

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

void apply_tell_slot(const struct consumer *c, int64_t after)
{
    attempt_slot_consumer(c->env->slot, &(struct attempt_consumer){
                                            .type = c->name.type,
                                            .name = c->name.name,
                                            .source = c->source,
                                            .id = c->row.id,
                                            .epoch = c->row.epoch,
                                            .after = after,
                                            .retry = c->policy.retry,
                                        });
}

const struct failure *apply_keep_failure(struct consumer *c,
                                         const struct failure *failure)
{
    struct failure *copy = arena_alloc(&c->arena, sizeof(*copy));

    *copy = *failure;
    return copy;
}

void apply_log_failure(const struct consumer *c, const struct message *message,
                       enum log_level level, const struct failure *failure,
                       const char *follows)
{
    char id[UUID_TEXT_LEN + 1], cause[FAILURE_CAUSE_SIZE];
    const struct log_about about = {
        .consumer = c->name.name,
        .topic = c->source,
        .position = message->position,
        .message_id = id,
        .alike = cause,
    };

    uuid_format(&message->id, id);
    failure_cause(failure, cause);
    log_write(c->env->log, level, &about, "could not apply %.*s: %s; %s",
              TEXT_ARGS(message->type), failure->reason, follows);
}

static void tell_entry(const struct consumer *c,
                       const struct undelivered_entry *e)
{
    int64_t wait = e->next_retry_at - consumer_clock(c->env);
    enum log_level level = LOG_ERROR;
    double seconds;
    char follows[96];

    switch (e->status) {
    case UNDELIVERED_FAILED:
        level = LOG_WARN;
        seconds = wait > 0 ? (double)wait / (double)CLOCK_SECOND : 0;
        if (e->failure_count == 0)
            snprintf(follows, sizeof(follows),
                     "no attempt is counted, it is looked at again in %.3f s",
                     seconds);
        else
            snprintf(follows, sizeof(follows),
                     "attempt %d of %d, the next one in %.3f s",
                     e->failure_count, c->policy.retry.attempts, seconds);
        break;
    case UNDELIVERED_HALTED:
        snprintf(follows, sizeof(follows), "it halts the consumer (attempt %d)",
                 e->failure_count);
        break;
    case UNDELIVERED_DEAD_LETTER_KEY:
        snprintf(follows, sizeof(follows),
                 "it is a dead letter and holds its key (attempt %d)",
                 e->failure_count);
        break;
    case UNDELIVERED_DEAD_LETTER:
    case UNDELIVERED_WAITING:
        snprintf(follows, sizeof(follows), "it is a dead letter (attempt %d)",
                 e->failure_count);
        break;
    }
    apply_log_failure(c, e->message, level, e->failure, follows);
}

void apply_entry_told(struct consumer *c, const struct undelivered_entry *e)
{
    c->failed++;
    if (e->status == UNDELIVERED_FAILED &&
        e->next_retry_at < c->retries.next_at)
        c->retries.next_at = e->next_retry_at;
    tell_entry(c, e);
}

void apply_entries_told(struct consumer *c)
{
    if (c->nentries > 0)
        c->retries.any = true;
    for (size_t i = 0; i < c->nentries; i++) {
        const struct undelivered_entry *e = &c->entries[i];

        if (e->failure == NULL)
            c->retries.doubtful = true;
        if (e->unresolved && e->status != UNDELIVERED_DEAD_LETTER)
            c->held.blocked[e->partition] = true;
        /* without keys it lies in every partition: told once */
        if (e->failure == NULL ||
            (i > 0 && e->unresolved && e->message == e[-1].message))
            continue;
        apply_entry_told(c, e);
    }
    for (size_t i = 0; i < c->nskipping; i++) {
        const struct skip *skip = &c->skipping[i];

        c->failed++;
        apply_log_failure(c, skip->message, LOG_WARN, skip->failure,
                          "it is skipped");
    }
}

void apply_wait_add(struct consumer *c, const struct unit *unit,
                    enum key_hold hold)
{
    apply_entry_add(c,
                    &(struct undelivered_entry){
                        .message = unit->message,
                        .key = unit->key,
                        .partition = unit->partition,
                        .status = hold == KEY_DEAD ? UNDELIVERED_DEAD_LETTER_KEY
                                                   : UNDELIVERED_WAITING,
                    });
}

void apply_skip_add(struct consumer *c, const struct unit *unit, bool every_key,
                    const struct failure *failure)
{
    if (c->nskipping == c->skipping_capacity) {
        c->skipping_capacity = c->skipping_capacity == 0 ? 16
                                                         : 2 * c->nskipping;
        c->skipping = mem_grow(c->skipping, c->skipping_capacity,
                               sizeof(*c->skipping));
    }
    c->skipping[c->nskipping++] = (struct skip){
        .position = unit->message->position,
        .partition = unit->partition,
        .key = unit->key,
        .every_key = every_key,
        .message = unit->message,
        .failure = failure,
    };
}

enum status apply_record(struct consumer *c, bool halt, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    enum status status;

    status = undelivered_record(env->db, env->names, c->row.id, c->source,
                                c->entries, c->nentries, env->ids,
                                clock_now(env->clock), &c->arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < c->nskipping; i++)
        status = skips_record(env->db, env->catalog, c->row.id, c->source,
                              &c->skipping[i], diag);
    for (size_t i = 0; i < c->nentries; i++)
        halt |= c->entries[i].status == UNDELIVERED_HALTED;
    if (status != STATUS_OK || !halt)
        return status;
    c->row.state = CONSUMER_HALTED;
    c->row.halt_reason = HALT_APPLY_ERROR;
    return registry_set_state(env->db, env->catalog, &c->row, CONSUMER_HALTED,
                              HALT_APPLY_ERROR, clock_now(env->clock), diag);
}

/* --- conflicts ------------------------------------------------------------ */

/* A batch is repeated whole so many times before it is taken apart, and a
 * message alone so many times before it counts as failed (design 3). */
#define CONFLICTS_WHOLE 3
#define CONFLICTS_ALONE 10

/* Counts one more in a row. True: a batch is to be taken apart, a message
 * alone has failed. */
static bool one_more_conflict(int *count, bool alone)
{
    /* what is alone from the beginning has met none as part of a batch */
    if (alone && *count < CONFLICTS_WHOLE)
        *count = CONFLICTS_WHOLE;
    if (alone || *count < CONFLICTS_WHOLE)
        (*count)++;
    return *count >= CONFLICTS_WHOLE + (alone ? CONFLICTS_ALONE : 0);
}

/* A statement that ends the connection, or the server, each time it is run is
 * its message's doing, as a conflict that never ends is. */
static bool may_pass(enum status status)
{
    return status == STATUS_CONFLICT || status == STATUS_LOST;
}

static void refuse_spent(struct apply_search *search, const char *why)
{
    failure_set(&search->failure, false, "conflict", "%d times in a row: %s",
                CONFLICTS_ALONE, why);
    search->refused = &search->failure;
}

void apply_search_resume(struct apply_search *search, int conflicts)
{
    if (search->refused == NULL &&
        conflicts >= CONFLICTS_WHOLE + CONFLICTS_ALONE)
        refuse_spent(search, "the connection to the database was lost while "
                             "it was applied");
}

/* --- units: all at once, or one by one ------------------------------------ */

/* A batch that has run so long takes no further message. */
#define LONGEST_US CLOCK_SECOND

bool apply_is_long(const struct consumer *c)
{
    return clock_monotonic() - c->began >= LONGEST_US;
}

/* True when the batch ends before the unit, the first one of its message. */
static bool ends_before(struct consumer *c, size_t unit)
{
    if (unit == 0 || c->units[unit].message == c->units[unit - 1].message ||
        !apply_is_long(c))
        return false;
    c->nunits = unit;
    return true;
}

/* Why a refused statement (by its tag) or commit (tag -1) fails a unit. */
static void refused_because(struct consumer *c, int64_t tag,
                            const struct diag *diag, struct failure *failure)
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
    enum key_hold hold = run->fails(c, run->arg, unit, failure);

    if (hold != KEY_FREE)
        undelivered_keys_hold(&c->newly, c->units[unit].key, hold);
}

static void unit_done(struct consumer *c, const struct apply_run *run,
                      size_t unit)
{
    if (run->done != NULL)
        run->done(c, run->arg, unit);
}

/* True when the unit has to wait, and was told so; or it waits in its row, and
 * those behind it wait with it. */
static bool unit_waits(struct consumer *c, const struct apply_run *run,
                       size_t unit)
{
    const struct undelivered_recorded *row = c->units[unit].recorded;
    struct text key = c->units[unit].key;
    enum key_hold hold = undelivered_keys_held(&c->newly, key);

    if (hold == KEY_FREE && run->held != NULL)
        hold = undelivered_keys_held(run->held, key);
    if (row != NULL) {
        c->met_recorded = true;
        if (hold == KEY_FREE)
            undelivered_keys_hold(&c->newly, key,
                                  undelivered_hold(row->status));
        return true;
    }
    if (hold == KEY_FREE)
        return false;
    run->waits(c, run->arg, unit, hold);
    return true;
}

static int64_t replay_epoch(const struct consumer *c)
{
    return c->replay_through != CHECKPOINT_NONE ? c->row.epoch : 0;
}

/* What is loaded for a batch is the host's own: when the database refuses
 * that, a table is gone or changed, and no message is to blame. */
static enum status begin(struct consumer *c, const struct unit *units,
                         size_t count, struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    struct diag refused;
    enum status status;

    if (ops->topic != NULL)
        ops->topic(c->applier.self, c->topic_on);
    status = ops->begin(c->applier.self, c->env->db, units, count,
                        replay_epoch(c), diag);
    if (status != STATUS_PERMANENT)
        return status;
    refused = *diag;
    return diag_set(diag, STATUS_CONFIG, "its read models cannot be read: %s",
                    refused.message);
}

/* Whether a unit failed because a table of its consumer is gone: CONFIG then,
 * as for the tables that the host itself writes. */
static enum status table_is_there(const struct consumer *c,
                                  const struct failure *failure,
                                  struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    const char *missing = db_missing_table(c->env->db);

    if (missing[0] == '\0' || ops->owns == NULL ||
        !ops->owns(c->applier.self, missing))
        return STATUS_OK;
    return diag_set(diag, STATUS_CONFIG, "its table '%s' is missing: %s",
                    missing, failure->reason);
}

/* The batch as a whole: one load, one write. Undoes nothing itself. */
static enum status run_together(struct consumer *c, const struct apply_run *run,
                                bool *repeat, struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    void *self = c->applier.self;
    struct failure failure;
    enum status status;

    status = begin(c, c->units, c->nunits, diag);
    for (size_t i = 0; status == STATUS_OK && i < c->nunits; i++) {
        enum apply_verdict verdict = APPLY_DONE;

        if (ends_before(c, i))
            break;
        if (unit_waits(c, run, i))
            continue;
        status = ops->apply(self, c->env->db, i, &verdict, &failure, diag);
        if (status == STATUS_OK && verdict == APPLY_STUCK) {
            *repeat = true;
            return STATUS_OK;
        }
        if (status == STATUS_OK && verdict == APPLY_FAILED) {
            status = table_is_there(c, &failure, diag);
            if (status == STATUS_OK)
                unit_failed(c, run, i, &failure);
        } else if (status == STATUS_OK) {
            unit_done(c, run, i);
        }
    }
    if (status == STATUS_OK && run->ran != NULL)
        status = run->ran(c, run->arg, diag);
    if (status == STATUS_OK)
        status = ops->finish(self, c->env->db, &failure, diag);
    if (applier_is_fault(status)) {
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
    struct db *db = c->env->db;
    enum status status;

    /* unit by unit everything was sent under a limit of its own */
    if (!careful)
        db_deadline(db, clock_monotonic() + c->env->time_limit);
    status = db_commit(db, NULL, diag);
    db_deadline(db, 0);
    return status;
}

/* One unit under its own savepoint: its failure is certainly its own. */
static enum status run_alone(struct consumer *c, size_t unit,
                             enum apply_verdict *verdict,
                             struct failure *failure, struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    void *self = c->applier.self;
    struct db *db = c->env->db;
    int outside = db_savepoints(db);
    int64_t tag = -1;
    bool told = false; /* *failure is set */
    enum status status;

    *verdict = APPLY_DONE;
    status = db_savepoint(db, diag);
    if (status != STATUS_OK)
        return status;
    status = begin(c, &c->units[unit], 1, diag);
    if (status == STATUS_OK)
        status = ops->apply(self, db, 0, verdict, failure, diag);
    told = status == STATUS_OK && *verdict != APPLY_DONE;
    if (status == STATUS_OK && *verdict == APPLY_DONE) {
        status = ops->finish(self, db, failure, diag);
        told = status == STATUS_FAILED;
        if (status == STATUS_OK)
            status = flush_in_time(c, &tag, diag);
    }
    if (applier_is_fault(status)) {
        if (!told)
            refused_because(c, tag, diag, failure);
        *verdict = APPLY_FAILED;
        status = STATUS_OK;
    }
    ops->end(self);
    if (status == STATUS_OK && *verdict != APPLY_DONE)
        status = table_is_there(c, failure, diag);
    if (status != STATUS_OK)
        return status;
    if (*verdict == APPLY_DONE)
        return db_release_to_depth(db, outside, diag);
    *verdict = APPLY_FAILED;
    status = db_rollback_to_depth(db, outside, diag);
    if (applier_is_fault(status))
        c->ended = apply_keep_failure(c, failure);
    return status;
}

enum status apply_search_on(struct consumer *c, struct apply_search *search,
                            enum status status, bool single, int *conflicts,
                            const struct diag *diag)
{
    db_rollback(c->env->db);
    c->row.state = CONSUMER_RUNNING;
    c->row.halt_reason = HALT_NONE;
    if (may_pass(status) && search->refused == NULL) {
        bool enough = one_more_conflict(conflicts, single);

        search->split = enough && !single;
        if (!enough || !single || status == STATUS_LOST)
            return status; /* a new connection resumes the search */
        refuse_spent(search, diag->message);
        return STATUS_OK;
    }
    if (status != STATUS_OK &&
        (!applier_is_fault(status) || search->refused != NULL))
        return status;
    if (!search->careful) {
        search->careful = true;
        return STATUS_OK;
    }
    /* only a batch as a whole asks for a repetition */
    assert(status != STATUS_OK);
    /* each unit was good alone, so it is the commit that refused; or one of
     * them has taken its neighbours along */
    search->split = !single;
    if (!single)
        return STATUS_OK;
    if (c->ended != NULL)
        search->failure = *c->ended;
    else
        refused_because(c, -1, diag, &search->failure);
    search->refused = &search->failure;
    return STATUS_OK;
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

        if (ends_before(c, i))
            break;
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
