#include "consumer/retry.h"

#include "base/hash.h"
#include "consumer/apply.h"

/* A row under retry, and what became of its units. A row whose keys were not
 * known has a unit for each key that can be told now. */
struct attempt {
    const struct undelivered_row *row;
    size_t units;
    size_t done;
    bool apart; /* some of its keys failed or wait, in rows of their own */
    const struct failure *failure; /* NULL unless it failed as a whole */
};

struct batch {
    struct undelivered_row *rows;
    struct attempt *attempts;
    size_t count;
};

struct key_sink {
    struct consumer *consumer;
    struct attempt *attempt;
    size_t origin;
};

static void add_unit(struct consumer *c, struct attempt *attempt, size_t origin,
                     struct text key)
{
    apply_unit_add(c, &(struct unit){
                          .message = &attempt->row->message,
                          .key = key,
                          .partition = attempt->row->partition,
                          .attempt = attempt->row->failure_count + 1,
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

static void unit_done(struct consumer *c, void *arg, size_t unit,
                      const struct failure *failure)
{
    struct batch *batch = arg;

    (void)failure;
    batch->attempts[c->units[unit].origin].done++;
}

/* Takes one key out of a row whose keys can be told now. The row itself must
 * go with that: another attempt would apply its other keys once more. */
static void key_apart(struct consumer *c, size_t unit,
                      enum undelivered_status status,
                      const struct failure *failure)
{
    const struct unit *u = &c->units[unit];

    apply_entry_add(c, &(struct undelivered_entry){
                           .message = u->message,
                           .key = u->key,
                           .partition = u->partition,
                           .status = status,
                           .failure_count = failure != NULL ? u->attempt : 0,
                           .failure = failure,
                       });
}

static void unit_fails(struct consumer *c, void *arg, size_t unit,
                       const struct failure *failure)
{
    struct batch *batch = arg;
    struct attempt *attempt = &batch->attempts[c->units[unit].origin];
    const struct failure *kept = apply_keep_failure(c, failure);

    if (!attempt->row->unresolved) {
        attempt->failure = kept;
        return;
    }
    key_apart(c, unit, UNDELIVERED_HALTED, kept);
    attempt->apart = true;
    attempt->done++;
}

static void unit_waits(struct consumer *c, void *arg, size_t unit,
                       const struct failure *failure)
{
    struct batch *batch = arg;
    struct attempt *attempt = &batch->attempts[c->units[unit].origin];

    (void)failure;
    if (!attempt->row->unresolved)
        return; /* its row stays as it is */
    key_apart(c, unit, UNDELIVERED_WAITING, NULL);
    attempt->apart = true;
    attempt->done++;
}

/* Turns rows into units; a row without a copy has none and is done. */
static enum status rows_to_units(struct consumer *c, struct batch *batch,
                                 struct diag *diag)
{
    c->nunits = c->nentries = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct attempt *attempt = &batch->attempts[i];
        const struct undelivered_row *row = &batch->rows[i];
        struct key_sink sink = {c, attempt, i};
        struct failure failure;
        enum status status;

        *attempt = (struct attempt){.row = row};
        if (!row->has_copy)
            continue;
        if (row->damage != NULL) {
            attempt->failure = row->damage;
            undelivered_keys_hold(&c->held, row->key);
            continue;
        }
        if (!row->unresolved) {
            add_unit(c, attempt, i, row->key);
            continue;
        }
        status = c->applier.ops->keys(c->applier.self, &row->message, take_key,
                                      &sink, &failure);
        if (status == STATUS_FAILED)
            attempt->failure = apply_keep_failure(c, &failure);
        else if (status != STATUS_OK)
            return diag_set(diag, status, "%s", failure.reason);
    }
    return STATUS_OK;
}

/* Applied rows go; a failed one halts the consumer again. */
static enum status settle_rows(struct consumer *c, struct batch *batch,
                               struct diag *diag)
{
    const struct consumer_env *env = c->env;
    enum status status = STATUS_OK;
    bool halted = false;

    for (size_t i = 0; status == STATUS_OK && i < batch->count; i++) {
        const struct attempt *a = &batch->attempts[i];

        if (a->failure != NULL) {
            status = undelivered_fail(
                env->db, env->catalog, a->row->id, UNDELIVERED_HALTED,
                a->row->failure_count + 1, a->failure, diag);
            halted = true;
        } else if (a->done == a->units) {
            status = undelivered_delete(env->db, env->catalog, a->row->id,
                                        diag);
        }
    }
    if (status == STATUS_OK)
        status = undelivered_record(env->db, env->names, c->row.id, c->source,
                                    c->entries, c->nentries, env->ids,
                                    clock_now(env->clock), &c->arena, diag);
    for (size_t i = 0; i < c->nentries; i++)
        halted |= c->entries[i].status == UNDELIVERED_HALTED;
    if (status == STATUS_OK && halted)
        status = apply_halt(c, diag);
    return status;
}

static enum status batch_run(struct consumer *c, struct batch *batch,
                             size_t limit, const struct apply_search *search,
                             bool *repeat, struct diag *diag)
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
    enum status status;

    *repeat = false;
    arena_reset(&c->arena);
    undelivered_keys_clear(&c->held);
    status = undelivered_due(env->db, env->catalog, c->row.id, c->source,
                             clock_now(env->clock), limit, env->batch_bytes,
                             &c->arena, &batch->rows, &batch->count, diag);
    if (status != STATUS_OK || batch->count == 0)
        return status;
    batch->attempts = arena_alloc(&c->arena,
                                  batch->count * sizeof(*batch->attempts));
    status = rows_to_units(c, batch, diag);
    if (status == STATUS_OK)
        status = apply_units(c, &run, repeat, diag);
    if (status == STATUS_OK && !*repeat)
        status = settle_rows(c, batch, diag);
    return status;
}

/* A message whose keys were not known has a row in each partition. They come
 * one after the other, and it counts once. */
static void count_applied(struct consumer *c, const struct attempt *a)
{
    int64_t position = a->row->message.position;

    if (!a->row->has_copy || a->failure != NULL || a->done < a->units ||
        a->apart || (a->row->unresolved && c->retried == position))
        return;
    c->applied++;
    if (a->row->unresolved)
        c->retried = position;
}

static void batch_committed(struct consumer *c, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct attempt *a = &batch->attempts[i];

        count_applied(c, a);
        /* without keys it lies in every partition: told once */
        if (a->failure == NULL ||
            (i > 0 && a->row->unresolved && a[-1].failure != NULL &&
             a[-1].row->message.position == a->row->message.position))
            continue;
        c->failed++;
        apply_log_failure(c, &a->row->message, a->failure);
    }
    apply_entries_told(c);
    apply_committed(c);
}

enum status retry_due(struct consumer *c, bool *worked, struct diag *diag)
{
    struct apply_search search = {.careful = false};
    size_t limit = c->env->batch;

    *worked = false;
    for (;;) {
        struct checkpoint_lock lock = {.epoch = 0};
        struct batch batch = {.count = 0};
        bool run, repeat;
        enum status status = apply_begin(c, &run, &lock, diag);

        if (status != STATUS_OK || !run)
            return status;
        status = batch_run(c, &batch, limit, &search, &repeat, diag);
        if (status == STATUS_OK && !repeat)
            status = apply_commit(c, search.careful, diag);
        c->applier.ops->end(c->applier.self);
        if (status == STATUS_OK && !repeat) {
            *worked = batch.count > 0;
            batch_committed(c, &batch);
            return STATUS_OK;
        }
        status = apply_search_on(c, &search, status, limit == 1, diag);
        if (status != STATUS_OK)
            return status;
        if (search.split)
            limit = 1;
    }
}
