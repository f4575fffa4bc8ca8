#include "model/saga_batch.h"

#include "base/memory.h"
#include "consumer/deadline.h"
#include "model/effects_unit.h"
#include "model/saga_flow.h"

/* Of the statements that are not the handlers'. */
#define TAG_OWN INT64_MAX

void saga_batch_init(struct saga_batch *batch,
                     const struct saga_batch_options *options)
{
    *batch = (struct saga_batch){.options = *options};
    saga_instances_init(&batch->instances, options->declaration->name,
                        options->names, options->catalog);
    saga_step_store_init(&batch->steps, options->declaration->name,
                         options->names, options->catalog);
    batch->effects = effects_new(&options->effects);
    batch->deadlines = saga_deadlines_new(&(struct saga_deadlines_options){
        .saga_type = options->declaration->name,
        .db = options->db,
        .catalog = options->catalog,
        .names = options->names,
        .ids = options->ids,
        .clock = options->clock,
        .payload_limit = options->effects.payload_limit,
    });
    batch->sql.sql = handler_sql_new(options->db);
}

void saga_batch_free(struct saga_batch *b)
{
    effects_free(b->effects);
    saga_deadlines_free(b->deadlines);
    handler_sql_free(b->sql.sql);
    map_free(&b->ids);
    mem_free(b->slots);
    arena_free(&b->arena);
    buffer_free(&b->json);
}

/* --- the sagas of a transaction --------------------------------------------
 */

void saga_batch_begin(struct saga_batch *b)
{
    b->nslots = 0;
    map_clear(&b->ids);
    arena_reset(&b->arena);
    effects_batch_begin(b->effects);
    saga_deadlines_batch_begin(b->deadlines);
    handler_sql_batch_begin(b->sql.sql, true);
}

size_t saga_batch_add(struct saga_batch *b, struct text saga_id, int partition)
{
    bool added;
    int64_t slot = map_put(&b->ids, saga_id, (int64_t)b->nslots, &added);

    if (!added)
        return (size_t)slot;
    if (b->nslots == b->slots_capacity) {
        b->slots_capacity = b->slots_capacity == 0 ? 512 : 2 * b->nslots;
        b->slots = mem_grow(b->slots, b->slots_capacity, sizeof(*b->slots));
    }
    b->slots[b->nslots] = (struct saga_slot){
        .row = {.saga_id = saga_id},
        .partition = partition,
    };
    return b->nslots++;
}

enum status saga_batch_load(struct saga_batch *b, struct db *db,
                            struct diag *diag)
{
    struct saga_instance *rows = arena_alloc(&b->arena,
                                             b->nslots * sizeof(*rows) + 1);
    enum status status;

    for (size_t i = 0; i < b->nslots; i++)
        rows[i] = b->slots[i].row;
    status = saga_instances_load(&b->instances, db, rows, b->nslots, &b->arena,
                                 diag);
    for (size_t i = 0; status == STATUS_OK && i < b->nslots; i++) {
        struct saga_slot *slot = &b->slots[i];

        slot->row = rows[i];
        slot->present = rows[i].stored;
        slot->completed = rows[i].completed;
        slot->state = rows[i].state;
    }
    if (status == STATUS_OK)
        status = saga_flow_load(b, db, diag);
    return status;
}

/* --- one unit of work ------------------------------------------------------
 */

void saga_batch_begin_instance(struct saga_batch *b, size_t slot)
{
    struct saga_slot *s = &b->slots[slot];

    s->row.id = uuid_v7(b->options.ids, clock_now(b->options.clock));
    s->row.version = saga_instance_version(&s->row.id);
    s->present = true;
}

/* Set by a deadline's handler one is due so much later at the earliest: what
 * sets itself again at once, or two that set each other, would keep the host
 * from all else. */
#define AGAIN_US CLOCK_SECOND

static void tell_moved(const struct saga_batch *b, struct text saga_id,
                       const struct handler_saga *by, struct text name)
{
    const struct declaration *d = b->options.declaration;
    const struct log_about about = {.consumer = d->name};

    log_write(b->options.log, LOG_WARN, &about,
              "deadline '" TEXT_FORMAT "' of saga '" TEXT_FORMAT
              "' was set by the handler of '" TEXT_FORMAT
              "' to be due at once: it is due in a second, lest it fire "
              "without an end",
              TEXT_ARGS(name), TEXT_ARGS(saga_id),
              TEXT_ARGS(d->deadlines[by->deadline]));
}

static enum status set_one(struct saga_batch *b,
                           const struct saga_deadline_of *of,
                           const struct handler_saga *saga,
                           const struct handler_deadline *deadline,
                           struct diag *diag)
{
    bool fires = saga->function == HANDLER_SAGA_DEADLINE;
    const struct saga_deadline_set set = {
        .name = b->options.declaration->deadlines[deadline->name],
        .relative = deadline->from_now,
        .at_us = deadline->at_us,
        .least_us = fires ? AGAIN_US : 0,
        .payload = deadline->payload,
        .metadata = deadline->metadata,
    };
    int64_t due_at;
    enum status status = saga_deadlines_set(b->deadlines, of, &set, &due_at,
                                            diag);

    if (status == STATUS_OK && fires &&
        (set.relative ? set.at_us < AGAIN_US : set.at_us != due_at))
        tell_moved(b, of->saga_id, saga, set.name);
    return status;
}

static enum status change_deadlines(struct saga_batch *b,
                                    const struct saga_slot *slot,
                                    const struct handler_saga *saga,
                                    struct failure *failure, struct diag *diag)
{
    const struct saga_deadline_of of = {
        .saga_id = slot->row.saga_id,
        .instance = slot->row.id,
        .partition = slot->partition,
    };
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < saga->ndeadlines; i++) {
        const struct handler_deadline *deadline = &saga->deadlines[i];

        if (deadline->cancelled)
            saga_deadlines_cancel(
                b->deadlines, &of,
                b->options.declaration->deadlines[deadline->name]);
        else
            status = set_one(b, &of, saga, deadline, diag);
    }
    if (saga->completed)
        saga_deadlines_clear(b->deadlines, &of);
    if (status != STATUS_INVALID)
        return status;
    failure_set(failure, false, "error", "saga:deadline: %s", diag->message);
    return STATUS_FAILED;
}

enum status saga_batch_call(struct saga_batch *b, size_t slot,
                            struct handler_call *call,
                            struct handler_saga *saga, struct failure *failure,
                            struct diag *diag)
{
    const struct handler *handler = &b->options.handler;
    struct saga_slot *s = &b->slots[slot];
    enum status status;

    call->declaration = b->options.declaration;
    call->key = s->row.saga_id;
    call->partition = s->partition;
    call->sql = b->sql.sql;
    call->effects = b->effects;
    saga->held = s->held;
    saga->state = s->present ? s->state : TEXT_NONE;
    saga->arena = &b->arena;
    saga->json = &b->json;
    buffer_clear(&b->json);
    status = handler->ops->saga(handler->code, call, slot, saga, failure, diag);
    if (status != STATUS_OK)
        return status;
    if (!s->present)
        saga_batch_begin_instance(b, slot);
    s->held = s->dirty = true;
    s->state = arena_copy(&b->arena, buffer_text(&b->json));
    s->completed |= saga->completed;
    return change_deadlines(b, s, saga, failure, diag);
}

struct unit_run {
    struct saga_batch *batch;
    size_t slot;
    saga_work_fn work;
    void *arg;
};

static enum status run_work(void *arg, struct failure *failure,
                            struct diag *diag)
{
    const struct unit_run *run = arg;
    enum status status = run->work(run->arg, run->batch, run->slot, failure,
                                   diag);

    if (status != STATUS_OK)
        return status;
    return effects_unit_check(run->batch->effects, &run->batch->options.handler,
                              failure);
}

enum status saga_batch_run(struct saga_batch *b, struct db *db, size_t slot,
                           saga_work_fn work, void *arg,
                           enum apply_verdict *verdict, struct failure *failure,
                           struct diag *diag)
{
    struct unit_run run = {b, slot, work, arg};
    struct saga_slot before = b->slots[slot];
    enum status status;

    effects_call_begin(b->effects);
    saga_deadlines_call_begin(b->deadlines);
    status = sql_unit_run(&b->sql, db, run_work, &run, verdict, failure, diag);
    if (status == STATUS_OK && *verdict == APPLY_DONE)
        return STATUS_OK;
    effects_call_undo(b->effects);
    saga_deadlines_call_undo(b->deadlines);
    b->slots[slot] = before;
    b->slots[slot].held = false; /* what the handlers hold is undefined */
    return status;
}

/* --- the end of a transaction ----------------------------------------------
 */

static enum status save(struct saga_batch *b, struct db *db, struct diag *diag)
{
    const struct saga_instance **rows[2];
    size_t counts[2] = {0, 0};
    int64_t now = 0;
    enum status status;

    for (int i = 0; i < 2; i++)
        rows[i] = arena_alloc(&b->arena,
                              b->nslots * sizeof(struct saga_instance *) + 1);
    for (size_t i = 0; i < b->nslots; i++) {
        struct saga_slot *slot = &b->slots[i];
        struct saga_instance *row = &slot->row;

        if (!slot->dirty)
            continue;
        row->state = slot->state;
        if (slot->completed && !row->completed) {
            /* retention judges by it, on whatever host */
            status = deadline_clock(db, b->options.clock, &now, diag);
            if (status != STATUS_OK)
                return status;
            row->completed = row->completes = true;
            row->completed_at = now;
        }
        rows[row->stored][counts[row->stored]++] = row;
    }
    status = saga_instances_update(&b->instances, db, rows[1], counts[1],
                                   TAG_OWN, &b->arena, diag);
    if (status == STATUS_OK)
        status = saga_instances_insert(&b->instances, db, rows[0], counts[0],
                                       TAG_OWN, &b->arena, diag);
    return status;
}

static const char *where_of(void *arg, int64_t tag)
{
    return saga_batch_where(arg, tag);
}

enum status saga_batch_finish(struct saga_batch *b, struct db *db,
                              struct failure *failure, struct diag *diag)
{
    enum status status = handler_sql_send(b->sql.sql, diag);

    if (status == STATUS_OK)
        status = save(b, db, diag);
    if (status == STATUS_OK)
        status = saga_flow_save(b, db, TAG_OWN, diag);
    if (status == STATUS_OK)
        status = saga_deadlines_send(b->deadlines, db, diag);
    if (status != STATUS_OK)
        return status;
    return effects_unit_send(b->effects, db, b->options.time_limit, where_of, b,
                             failure, diag);
}

const char *saga_batch_where(const struct saga_batch *b, int64_t tag)
{
    return handler_sql_where(b->sql.sql, tag);
}

void saga_batch_end(struct saga_batch *b)
{
    b->options.handler.ops->batch_end(b->options.handler.code);
}
