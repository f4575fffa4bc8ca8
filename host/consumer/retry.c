#include "consumer/retry.h"

#include "base/hash.h"
#include "consumer/apply.h"
#include "consumer/attempt_slot.h"
#include "consumer/careful.h"
#include "consumer/careful_count.h"
#include "consumer/deadline.h"
#include "consumer/keyless.h"
#include "consumer/outcome.h"

#include <limits.h>

/* A row under retry, and what became of its units. A row whose keys were not
 * known has a unit for each key that can be told now. */
struct retry {
    const struct undelivered_row *row;
    size_t units;
    size_t done;
    bool apart;  /* some of its keys failed or wait, in rows of their own */
    bool failed; /* as a whole, with this outcome */
    struct outcome outcome; /* of the row */
};

struct batch {
    struct undelivered_row *rows;
    struct retry *attempts;
    size_t count;
    bool whole;    /* these are all rows that are due */
    bool behind;   /* some of their keys are held further on */
    bool prepares; /* it only records what the attempts of the next one need */
};

struct key_sink {
    struct consumer *consumer;
    struct retry *attempt;
    size_t origin;
};

/* The number of the attempt that a row is at. */
static int attempt_of(const struct undelivered_row *row)
{
    if (row->counted)
        return row->failure_count;
    return row->failure_count < INT_MAX ? row->failure_count + 1 : INT_MAX;
}

static void add_unit(struct consumer *c, struct retry *attempt, size_t origin,
                     struct text key)
{
    apply_unit_add(c, &(struct unit){
                          .message = &attempt->row->message,
                          .key = key,
                          .partition = attempt->row->partition,
                          .attempt = attempt_of(attempt->row),
                          .origin = origin,
                      });
    attempt->units++;
}

/* An unresolved row stands for the keys of its own partition only. */
static void take_key(void *arg, struct text key)
{
    const struct key_sink *sink = arg;
    struct consumer *c = sink->consumer;

    if (hash_partition(key, c->env->partitions) ==
        sink->attempt->row->partition)
        add_unit(c, sink->attempt, sink->origin, arena_copy(&c->arena, key));
}

static void unit_done(struct consumer *c, void *arg, size_t unit)
{
    struct batch *batch = arg;

    batch->attempts[c->units[unit].origin].done++;
}

/* The row as a whole has failed so many times now. */
static enum key_hold row_fails(struct consumer *c, struct retry *attempt,
                               int failures, const struct failure *failure)
{
    const struct undelivered_row *row = attempt->row;
    const struct unit unit = {
        .message = &row->message,
        .key = row->key,
        .partition = row->partition,
        .attempt = failures,
    };

    attempt->failed = true;
    attempt->outcome = outcome_of(c, &unit, failures, row->unresolved, failure);
    if (attempt->outcome.skip)
        apply_skip_add(c, &unit, row->unresolved,
                       attempt->outcome.entry.failure);
    return attempt->outcome.hold;
}

/* Takes one key out of a row whose keys can be told now. The row itself must
 * go with that: another attempt would apply its other keys once more. */
static enum key_hold key_fails(struct consumer *c, struct retry *attempt,
                               size_t unit, const struct failure *failure)
{
    const struct unit *u = &c->units[unit];
    struct outcome outcome = outcome_of(c, u, u->attempt, false, failure);

    if (outcome.skip)
        apply_skip_add(c, u, false, outcome.entry.failure);
    else
        apply_entry_add(c, &outcome.entry);
    attempt->apart = true;
    attempt->done++;
    return outcome.hold;
}

static enum key_hold unit_fails(struct consumer *c, void *arg, size_t unit,
                                const struct failure *failure)
{
    struct batch *batch = arg;
    struct retry *attempt = &batch->attempts[c->units[unit].origin];

    return attempt->row->unresolved
               ? key_fails(c, attempt, unit, failure)
               : row_fails(c, attempt, attempt_of(attempt->row), failure);
}

static void unit_waits(struct consumer *c, void *arg, size_t unit,
                       enum key_hold hold)
{
    const struct unit *u = &c->units[unit];
    struct batch *batch = arg;
    struct retry *attempt = &batch->attempts[u->origin];

    if (!attempt->row->unresolved)
        return; /* its row stays as it is */
    apply_wait_add(c, u, hold);
    attempt->apart = true;
    attempt->done++;
}

/* A row that cannot be tried fails in its turn, not before an earlier one of
 * its key. */
static bool is_behind(const struct consumer *c, struct text key)
{
    for (size_t i = 0; i < c->nunits; i++)
        if (text_equal(c->units[i].key, key))
            return true;
    return false;
}

/* The attempt that spent the budget was counted by somebody else: the worker
 * that made it has died. What that means was left to be decided. */
static bool is_spent(const struct consumer *c,
                     const struct undelivered_row *row)
{
    return row->reason.data != NULL && !row->counted &&
           !retry_policy_allows(&c->policy.retry, row->failure_count);
}

/* A row that cannot be tried, or must not be tried again. */
static enum key_hold row_is_not_tried(struct consumer *c, struct retry *attempt)
{
    const struct undelivered_row *row = attempt->row;
    struct failure recorded;

    if (!is_spent(c, row))
        return row_fails(c, attempt, attempt_of(row), row->damage);
    failure_recorded(&recorded, row->reason);
    return row_fails(c, attempt, row->failure_count, &recorded);
}

static bool is_same_message(const struct undelivered_row *a,
                            const struct undelivered_row *b)
{
    return a->unresolved && b->unresolved &&
           a->message.position == b->message.position &&
           a->failure_count == b->failure_count;
}

/* A message without keys has failed once, whatever number of rows it has: it is
 * not asked again, and all of them are due at the same moment. */
static bool fails_as_before(struct batch *batch, size_t i)
{
    struct retry *attempt = &batch->attempts[i];

    if (i == 0 || !attempt[-1].failed ||
        !is_same_message(&batch->rows[i - 1], &batch->rows[i]))
        return false;
    attempt->failed = true;
    attempt->outcome = attempt[-1].outcome;
    return true;
}

/* Turns rows into units; a row without a copy has none and is done. */
static enum status rows_to_units(struct consumer *c, struct batch *batch,
                                 struct diag *diag)
{
    c->nunits = c->nentries = c->nskipping = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct retry *attempt = &batch->attempts[i];
        const struct undelivered_row *row = &batch->rows[i];
        struct key_sink sink = {c, attempt, i};
        struct failure failure;
        enum status status;

        *attempt = (struct retry){.row = row};
        if (!row->has_copy || fails_as_before(batch, i))
            continue;
        if (row->damage != NULL || is_spent(c, row)) {
            enum key_hold hold;

            if (is_behind(c, row->key)) { /* the batch ends before it */
                batch->count = i;
                batch->whole = false;
                break;
            }
            hold = row_is_not_tried(c, attempt);
            if (hold != KEY_FREE)
                undelivered_keys_hold(&c->newly, row->key, hold);
            continue;
        }
        if (!row->unresolved) {
            add_unit(c, attempt, i, row->key);
            continue;
        }
        status = c->applier.ops->keys(c->applier.self, &row->message,
                                      attempt_of(row), take_key, &sink,
                                      &failure);
        if (status == STATUS_FAILED)
            (void)row_fails(c, attempt, attempt_of(row), &failure);
        else if (status != STATUS_OK)
            return diag_set(diag, status, "%s", failure.reason);
        if (apply_is_long(c)) { /* the rows behind it stay due */
            batch->whole = batch->whole && i + 1 == batch->count;
            batch->count = i + 1;
        }
    }
    return STATUS_OK;
}

/* Applied and skipped rows go; a failed one gets its outcome, and a key's dead
 * letter takes with it what waits behind it. */
static enum status settle_rows(struct consumer *c, struct batch *batch,
                               struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct text *gone = arena_alloc(&c->arena, batch->count * sizeof(*gone));
    struct text *dead = arena_alloc(&c->arena, batch->count * sizeof(*dead));
    struct undelivered_failed *failed = arena_alloc(
        &c->arena, batch->count * sizeof(*failed));
    size_t ngone = 0, ndead = 0, nfailed = 0;
    bool halt = false;
    enum status status;

    for (size_t i = 0; i < batch->count; i++) {
        const struct retry *a = &batch->attempts[i];

        if (a->failed && !a->outcome.skip) {
            failed[nfailed++] = (struct undelivered_failed){a->row->id,
                                                            &a->outcome.entry};
            if (!a->row->unresolved && a->outcome.hold == KEY_DEAD)
                dead[ndead++] = a->row->key;
            halt |= a->outcome.entry.status == UNDELIVERED_HALTED;
        } else if (a->failed || a->done == a->units) {
            gone[ngone++] = (struct text){a->row->id, UUID_TEXT_LEN};
        }
    }
    status = undelivered_fail(env->db, env->names, failed, nfailed, &c->arena,
                              diag);
    if (status == STATUS_OK)
        status = undelivered_bury(env->db, env->catalog, c->row.id, c->source,
                                  dead, ndead, diag);
    if (status == STATUS_OK)
        status = undelivered_delete(env->db, env->catalog, gone, ngone, diag);
    if (status == STATUS_OK)
        status = checkpoint_still(env->db, env->catalog, c->row.id,
                                  c->row.epoch, c->topic_on, diag);
    if (status == STATUS_OK)
        status = apply_record(c, halt, diag);
    return status;
}

/* Brings the rows of the first one's message together: without keys it has one
 * in each partition, and they are tried as the one message that they are. */
static size_t gather_message(struct batch *batch)
{
    size_t count = 1;

    for (size_t i = 1; i < batch->count; i++) {
        struct undelivered_row row = batch->rows[i];

        if (!is_same_message(&batch->rows[0], &row))
            continue;
        batch->rows[i] = batch->rows[count];
        batch->rows[count++] = row;
    }
    return count;
}

/* Leaves a batch that needs no care, or the one message that does. True when
 * the attempt that is about to be made of that must be counted before: it is
 * really made, and is not counted yet. */
static bool counts_first(const struct consumer *c, struct batch *batch)
{
    const struct undelivered_row *row = &batch->rows[0];
    size_t count = 0;
    bool first = false;

    while (count < batch->count && !careful_is_of_row(c, &batch->rows[count]))
        count++;
    if (count == 0 && batch->count > 0) {
        count = gather_message(batch);
        for (size_t i = 0; i < count; i++)
            careful_count_mark(c, &batch->rows[i]);
        first = !row->counted && row->has_copy && row->damage == NULL &&
                !is_spent(c, row);
    }
    batch->whole = batch->whole && count == batch->count;
    batch->count = count;
    return first;
}

static enum status batch_run(struct consumer *c, struct batch *batch,
                             const struct checkpoint_lock *lock,
                             const struct apply_search *search, bool *repeat,
                             struct diag *diag)
{
    const struct apply_run run = {
        .careful = search->careful,
        .refused = search->refused,
        .done = unit_done,
        .fails = unit_fails,
        .waits = unit_waits,
        .arg = batch,
    };
    const struct consumer_env *env = c->env;
    size_t limit = c->retries.singly > 0 ? 1 : env->batch;
    size_t units;
    int64_t now;
    enum status status;

    *repeat = false;
    c->began = clock_monotonic();
    apply_tell_slot(c, ATTEMPT_RETRY);
    batch->count = 0;
    c->retries.any = lock->undelivered;
    c->retries.next_at = INT64_MAX;
    if (!lock->undelivered)
        return STATUS_OK;
    arena_reset(&c->arena);
    undelivered_keys_clear(&c->newly);
    status = deadline_clock(env->db, env->clock, &now, diag);
    if (status == STATUS_OK)
        status = undelivered_due(env->db, env->catalog, c->row.id, c->source,
                                 &c->leases, now, limit, env->batch_bytes,
                                 &c->arena, &batch->rows, &batch->count,
                                 &batch->whole, &batch->behind, diag);
    if (status != STATUS_OK)
        return status;
    careful_saw_due(c, batch->count);
    status = keyless_align(c, batch->rows, batch->count, &batch->prepares,
                           diag);
    if (status != STATUS_OK || batch->prepares)
        return status;
    batch->prepares = counts_first(c, batch);
    if (batch->prepares)
        return careful_count_row(c, &batch->rows[0], diag);
    if (batch->count == 0)
        return undelivered_next(env->db, env->catalog, c->row.id, c->source,
                                &c->leases, &c->retries.next_at, diag);
    batch->attempts = arena_alloc(&c->arena,
                                  batch->count * sizeof(*batch->attempts));
    status = rows_to_units(c, batch, diag);
    units = c->nunits;
    if (status == STATUS_OK)
        status = apply_units(c, &run, repeat, diag);
    batch->whole = batch->whole && c->nunits == units;
    if (status == STATUS_OK && !*repeat)
        status = settle_rows(c, batch, diag);
    return status;
}

/* A message whose keys were not known has a row in each partition. They come
 * one after the other, and it counts once. */
static void count_applied(struct consumer *c, const struct retry *a)
{
    int64_t position = a->row->message.position;

    if (!a->row->has_copy || a->failed || a->done < a->units || a->apart ||
        (a->row->unresolved && c->retried == position))
        return;
    c->applied++;
    if (a->row->unresolved)
        c->retried = position;
}

/* Keys of which no row is left, or another one holds, are known by now: when
 * all rows that were due have been tried. Of those that went in batches before
 * this one nothing is remembered, so they are read again, as are those that
 * rows further on hold. */
static void let_go(struct consumer *c, const struct batch *batch)
{
    if (batch->behind || (batch->whole && c->retries.cut))
        c->held_known = false;
    c->retries.cut = !batch->whole;
    for (size_t i = 0; i < batch->count; i++) {
        const struct undelivered_row *row = batch->attempts[i].row;
        enum key_hold hold = undelivered_keys_held(&c->newly, row->key);

        if (row->unresolved)
            c->held_known = false; /* its partition, and keys of its own */
        else if (batch->whole || hold != KEY_FREE)
            undelivered_keys_hold(&c->held, row->key, hold);
    }
}

static void batch_committed(struct consumer *c, const struct batch *batch)
{
    c->retries.conflicts = 0;
    careful_retried(c);
    c->retries.singly -= batch->count < c->retries.singly ? batch->count
                                                          : c->retries.singly;
    let_go(c, batch);
    if (batch->count > 0)
        c->retries.next_at = 0; /* there may be more of them */
    for (size_t i = 0; i < batch->count; i++) {
        const struct retry *a = &batch->attempts[i];

        count_applied(c, a);
        /* without keys it lies in every partition: told once */
        if (!a->failed || a->outcome.skip ||
            (i > 0 && a->row->unresolved && a[-1].failed &&
             a[-1].row->message.position == a->row->message.position))
            continue;
        apply_entry_told(c, &a->outcome.entry);
    }
    apply_entries_told(c);
    apply_committed(c);
}

enum status retry_due(struct consumer *c, bool *worked, struct diag *diag)
{
    struct apply_search search = {.careful = false};

    *worked = false;
    apply_search_resume(&search, c->retries.conflicts);
    for (;;) {
        struct checkpoint_lock lock = {.epoch = 0};
        struct batch batch = {.count = 0};
        bool run, repeat;
        enum status status = apply_begin(c, &run, &lock, diag);

        if (status != STATUS_OK || !run)
            return status;
        status = batch_run(c, &batch, &lock, &search, &repeat, diag);
        if (status == STATUS_OK && batch.count == 0) {
            db_rollback(c->env->db);
            c->retries.conflicts = 0;
            batch.whole = true;
            let_go(c, &batch);
            return STATUS_OK;
        }
        if (status == STATUS_OK && !repeat)
            status = apply_commit(c, search.careful, diag);
        c->applier.ops->end(c->applier.self);
        if (status == STATUS_OK && batch.prepares)
            continue;
        if (status == STATUS_OK && !repeat) {
            *worked = true;
            batch_committed(c, &batch);
            return STATUS_OK;
        }
        status = apply_search_on(c, &search, status, batch.count <= 1,
                                 &c->retries.conflicts, diag);
        if (search.split) {
            c->retries.singly = batch.count;
            *worked = status == STATUS_OK;
        }
        if (status != STATUS_OK || search.split)
            return status;
    }
}
