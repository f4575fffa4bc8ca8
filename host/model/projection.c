#include "model/projection.h"

#include "base/memory.h"
#include "model/handler_sql.h"
#include "model/handler_unit.h"
#include "model/projection_delete.h"
#include "model/projection_slots.h"

#include <assert.h>

struct projection {
    const struct declaration *declaration;
    struct handler handler;
    struct uuid_source *ids;
    const struct clock *clock;
    struct read_model_table table;
    struct handler_sql *sql; /* queries only */
    const struct catalog *catalog;
    struct projection_topic topic;
    bool retraces; /* what was applied and told before is applied again */

    /* the batch in hand */
    const struct unit *units;
    size_t nunits;
    int64_t replay_epoch; /* 0: no replay */
    struct projection_slots slots;
    size_t *unit_slot; /* slot number of each unit */
    size_t *unit_prev; /* the slot's applied unit before it */
    size_t unit_capacity;
    struct arena arena;
    struct buffer json;
};

static enum status projection_begin(void *self, struct db *db,
                                    const struct unit *units, size_t count,
                                    int64_t replay_epoch, struct diag *diag)
{
    struct projection *p = self;

    p->units = units;
    p->nunits = count;
    p->replay_epoch = replay_epoch;
    arena_reset(&p->arena);
    projection_slots_begin(&p->slots);
    projection_topic_begin(&p->topic);
    if (count > p->unit_capacity) {
        p->unit_capacity = count;
        p->unit_slot = mem_grow(p->unit_slot, count, sizeof(*p->unit_slot));
        p->unit_prev = mem_grow(p->unit_prev, count, sizeof(*p->unit_prev));
    }
    for (size_t i = 0; i < count; i++)
        p->unit_slot[i] = projection_slots_of(&p->slots, units[i].key);

    handler_sql_batch_begin(p->sql, false);
    return projection_slots_read(&p->slots, &p->table, p->declaration->nfields,
                                 replay_epoch, db, &p->arena, diag);
}

/* --- apply: one unit, in memory ----------------------------------------------
 */

static struct handler_call call_of(const struct projection *p, size_t unit)
{
    const struct unit *u = &p->units[unit];

    return (struct handler_call){
        .declaration = p->declaration,
        .message = u->message,
        .key = u->key,
        .partition = u->partition,
        .attempt = u->attempt,
        .replaying = p->replay_epoch > 0,
        .sql = p->sql,
    };
}

static bool rebuild_slot(struct projection *p, struct projection_slot *slot);

/* The state of a slot as JSON, which goes into the batch's arena. */
static enum status encode(struct projection *p, size_t number, size_t unit,
                          struct db_value *fields, struct text *json,
                          struct failure *failure)
{
    const struct handler_call call = call_of(p, unit);
    enum status status;

    buffer_clear(&p->json);
    status = p->handler.ops->state_encode(p->handler.code, &call, number,
                                          &p->json, fields, &p->arena, failure);
    if (status == STATUS_OK)
        *json = arena_copy(&p->arena, buffer_text(&p->json));
    return status;
}

static struct db_value *new_fields(struct projection *p)
{
    return arena_alloc(&p->arena,
                       p->declaration->nfields * sizeof(struct db_value) + 1);
}

/* What a read model was before a handler deleted it. Its own table may be
 * anything by now, so what came before is applied once more. */
static enum status last_state(struct projection *p, size_t number,
                              struct text *json, struct failure *failure)
{
    struct projection_slot *slot = &p->slots.slots[number];

    if (slot->changed_by == PROJECTION_NO_UNIT) {
        *json = slot->json;
        return STATUS_OK;
    }
    if (slot->entry != PROJECTION_TOPIC_NONE) {
        *json = projection_topic_state(&p->topic, slot->entry);
        return STATUS_OK;
    }
    if (!rebuild_slot(p, slot) || !slot->filled) {
        failure_set(failure, false, "state",
                    "the last state of a read model that was deleted cannot be "
                    "told: its handlers gave another one when they were called "
                    "again");
        return STATUS_FAILED;
    }
    return encode(p, number, slot->last_unit, new_fields(p), json, failure);
}

/* Tells the topic what a unit has made of a slot, unless that is told when the
 * batch is done. */
static enum status tell_topic(struct projection *p, size_t unit, bool existed,
                              enum handler_outcome outcome,
                              struct failure *failure)
{
    size_t number = p->unit_slot[unit];
    struct projection_slot *slot = &p->slots.slots[number];
    bool deleted = outcome == HANDLER_DELETED;
    struct text state;
    enum status status;

    if (deleted ? !existed : !p->topic.every)
        return STATUS_OK;
    status = deleted ? last_state(p, number, &state, failure)
                     : encode(p, number, unit, new_fields(p), &state, failure);
    if (status != STATUS_OK)
        return status;
    slot->entry = projection_topic_add(&p->topic, unit, p->units[unit].message,
                                       uuid_v7(p->ids, clock_now(p->clock)),
                                       slot->key, state, deleted);
    if (deleted)
        slot->entry = PROJECTION_TOPIC_NONE;
    return STATUS_OK;
}

static enum status run_handler(struct projection *p, size_t unit,
                               struct failure *failure, struct diag *diag)
{
    const struct handler_ops *ops = p->handler.ops;
    size_t number = p->unit_slot[unit];
    struct projection_slot *slot = &p->slots.slots[number];
    struct handler_call call = call_of(p, unit);
    bool tells = p->topic.on && !p->retraces;
    /* what a replay has not come to yet is still there for readers */
    bool existed = slot->present ||
                   (slot->stale && slot->changed_by == PROJECTION_NO_UNIT);
    enum handler_outcome outcome;
    enum status status = STATUS_OK;

    if (tells)
        status = projection_topic_check(&p->topic, call.message, failure);
    if (status == STATUS_OK && !slot->filled)
        status = slot->present ? ops->state_decode(p->handler.code, &call,
                                                   number, slot->json, failure)
                               : ops->state_initial(p->handler.code, &call,
                                                    number, failure);
    if (status == STATUS_OK)
        status = ops->apply_state(p->handler.code, &call, number, &outcome,
                                  failure, diag);
    if (status != STATUS_OK)
        return status;
    if (outcome == HANDLER_UNTOUCHED) {
        slot->filled = slot->present; /* what `initial` gave is not kept */
        return STATUS_OK;
    }
    if (tells)
        status = tell_topic(p, unit, existed, outcome, failure);
    slot->present = slot->filled = outcome == HANDLER_CHANGED;
    slot->dirty = true;
    slot->changed_by = unit;
    return status;
}

/* Takes a slot back to what the units before the failed one had made of it:
 * from what was stored, through the same handlers again. False when that does
 * not come out the same. */
static bool rebuild_slot(struct projection *p, struct projection_slot *slot)
{
    size_t chain = PROJECTION_NO_UNIT;
    struct failure failure;
    struct diag diag;
    bool same = true;

    slot->filled = slot->dirty = false;
    slot->present = slot->stored && !slot->stale;
    slot->changed_by = PROJECTION_NO_UNIT;
    p->retraces = true;
    /* turn the chain round: oldest first */
    for (size_t unit = slot->last_unit; unit != PROJECTION_NO_UNIT;) {
        size_t before = p->unit_prev[unit];

        p->unit_prev[unit] = chain;
        chain = unit;
        unit = before;
    }
    slot->last_unit = PROJECTION_NO_UNIT;
    for (size_t unit = chain; same && unit != PROJECTION_NO_UNIT;) {
        size_t after = p->unit_prev[unit];

        same = run_handler(p, unit, &failure, &diag) == STATUS_OK;
        p->unit_prev[unit] = slot->last_unit;
        slot->last_unit = unit;
        unit = after;
    }
    p->retraces = false;
    return same;
}

static enum status projection_apply(void *self, struct db *db, size_t unit,
                                    enum apply_verdict *verdict,
                                    struct failure *failure, struct diag *diag)
{
    struct projection *p = self;
    struct projection_slot *slot = &p->slots.slots[p->unit_slot[unit]];
    enum status status;

    (void)db;
    handler_sql_call_begin(p->sql);
    status = run_handler(p, unit, failure, diag);
    if (status == STATUS_OK) {
        p->unit_prev[unit] = slot->last_unit;
        slot->last_unit = unit;
        *verdict = APPLY_DONE;
        return STATUS_OK;
    }
    if (status != STATUS_FAILED)
        return status;
    /* a query that failed has doomed the transaction */
    *verdict = !handler_sql_call_undo(p->sql) || !rebuild_slot(p, slot)
                   ? APPLY_STUCK
                   : APPLY_FAILED;
    return STATUS_OK;
}

/* --- finish: what changed, in bulk
 * -------------------------------------------- */

static enum status slot_row(struct projection *p, size_t number,
                            struct read_model_row *row, struct failure *failure)
{
    const struct projection_slot *slot = &p->slots.slots[number];
    struct db_value *fields = new_fields(p);
    enum status status;

    *row = (struct read_model_row){
        .key = slot->key,
        .read_id = slot->read_id,
        .epoch = p->replay_epoch,
        .made_anew = slot->stale,
    };
    if (!slot->present)
        return STATUS_OK;
    assert(slot->filled && slot->last_unit != PROJECTION_NO_UNIT);
    status = encode(p, number, slot->last_unit, fields, &row->state, failure);
    if (status != STATUS_OK)
        return status;
    row->message_id = slot->entry != PROJECTION_TOPIC_NONE
                          ? projection_topic_id(&p->topic, slot->entry)
                          : uuid_v7(p->ids, clock_now(p->clock));
    if (p->replay_epoch > 0)
        made_anew_remember(&p->slots.made, slot->key, &row->message_id);
    if (p->topic.on && slot->entry == PROJECTION_TOPIC_NONE)
        (void)projection_topic_add(
            &p->topic, slot->changed_by, p->units[slot->changed_by].message,
            row->message_id, slot->key, row->state, false);
    row->fields = fields;
    if (slot->stored)
        row->changed = slot->unknown | read_model_table_changed(
                                           &p->table, slot->fields, fields);
    return STATUS_OK;
}

static enum status projection_finish(void *self, struct db *db,
                                     struct failure *failure, struct diag *diag)
{
    /* rows that go make room for unique values of rows that come */
    static const enum read_model_write order[] = {
        READ_MODEL_DELETE, READ_MODEL_UPDATE, READ_MODEL_INSERT};
    struct projection *p = self;
    struct read_model_row *rows[3];
    size_t counts[3] = {0, 0, 0};
    enum status status = STATUS_OK;

    for (size_t i = 0; i < 3; i++)
        rows[i] = arena_alloc(&p->arena, p->slots.count * sizeof(**rows) + 1);
    for (size_t i = 0; i < p->slots.count; i++) {
        const struct projection_slot *slot = &p->slots.slots[i];
        enum read_model_write what;

        if (!slot->dirty || (!slot->stored && !slot->present))
            continue;
        what = !slot->present ? READ_MODEL_DELETE
               : slot->stored ? READ_MODEL_UPDATE
                              : READ_MODEL_INSERT;
        status = slot_row(p, i, &rows[what][counts[what]++], failure);
        if (status != STATUS_OK)
            return status;
    }
    for (size_t i = 0; status == STATUS_OK && i < 3; i++)
        status = read_model_table_write(&p->table, db, order[i], rows[order[i]],
                                        counts[order[i]], &p->arena, diag);
    if (status == STATUS_OK && p->topic.on)
        status = projection_topic_send(&p->topic, db, clock_now(p->clock),
                                       &p->arena, diag);
    return status;
}

/* --- the rest
 * ------------------------------------------------------------------ */

static enum status projection_keys(void *self, const struct message *message,
                                   int attempt, applier_key_fn emit, void *arg,
                                   struct failure *failure)
{
    struct projection *p = self;

    return handler_unit_keys(&p->handler, p->declaration, message, attempt,
                             emit, arg, failure);
}

static enum status projection_on_error(void *self, const struct unit *unit,
                                       int failures,
                                       const struct failure *failure,
                                       enum error_policy *policy,
                                       struct failure *refused)
{
    struct projection *p = self;

    return handler_unit_on_error(&p->handler, p->declaration, unit, failures,
                                 failure, policy, refused);
}

/* --- rebuild ---------------------------------------------------------------
 */

static struct projection_delete delete_of(struct projection *p)
{
    return (struct projection_delete){
        .declaration = p->declaration,
        .catalog = p->catalog,
        .table = &p->table,
        .topic = &p->topic,
        .ids = p->ids,
        .clock = p->clock,
        .arena = &p->arena,
    };
}

static enum status projection_sweep(void *self, struct db *db,
                                    const struct applier_stale *stale,
                                    struct buffer *after, bool *more,
                                    struct diag *diag)
{
    struct projection *p = self;
    const struct projection_delete delete = delete_of(p);

    arena_reset(&p->arena);
    return projection_delete_stale(&delete, db, stale, after, more, diag);
}

static enum status projection_remove(void *self, struct db *db, struct text key,
                                     struct diag *diag)
{
    struct projection *p = self;
    const struct projection_delete delete = delete_of(p);

    arena_reset(&p->arena);
    return projection_delete_keys(&delete, db, &key, 1, diag);
}

static void projection_set_topic(void *self, bool on)
{
    struct projection *p = self;

    p->topic.on = on;
}

static const char *projection_where(void *self, int64_t tag)
{
    (void)self;
    (void)tag;
    return ""; /* its statements come from no line of a script */
}

static void projection_end(void *self)
{
    struct projection *p = self;

    p->units = NULL;
    p->nunits = 0;
    p->handler.ops->batch_end(p->handler.code);
}

static const struct applier_ops projection_ops = {
    .keys = projection_keys,
    .topic = projection_set_topic,
    .begin = projection_begin,
    .apply = projection_apply,
    .finish = projection_finish,
    .sweep = projection_sweep,
    .remove = projection_remove,
    .on_error = projection_on_error,
    .where = projection_where,
    .end = projection_end,
};

struct projection *projection_new(const struct projection_options *options)
{
    struct projection *p = mem_alloc(sizeof(*p));
    struct read_model_writer writer;

    p->declaration = options->declaration;
    p->catalog = options->catalog;
    read_model_writer_init(&writer, options->declaration->name, options->names,
                           options->catalog, options->partitions,
                           options->notify);
    projection_topic_init(&p->topic, options->declaration, options->cascade,
                          &writer);
    p->handler = options->handler;
    p->ids = options->ids;
    p->clock = options->clock;
    p->sql = handler_sql_new(options->db);
    read_model_table_init(&p->table, options->declaration, options->names,
                          options->catalog);
    return p;
}

void projection_free(struct projection *p)
{
    if (p == NULL)
        return;
    read_model_table_free(&p->table);
    projection_topic_free(&p->topic);
    handler_sql_free(p->sql);
    projection_slots_free(&p->slots);
    mem_free(p->unit_slot);
    mem_free(p->unit_prev);
    arena_free(&p->arena);
    buffer_free(&p->json);
    mem_free(p);
}

struct applier projection_applier(struct projection *p)
{
    return (struct applier){.ops = &projection_ops, .self = p};
}
