#include "model/projection.h"

#include "base/map.h"
#include "base/memory.h"
#include "model/handler_sql.h"
#include "model/handler_unit.h"
#include "model/made_anew.h"
#include "model/projection_topic.h"
#include "model/read_model_table.h"
#include "topic/read_model_switch.h"

#include <assert.h>

/* A chain of a slot's applied units ends here. */
#define NO_UNIT SIZE_MAX

/* One key of the batch. Its state, once a handler has looked, lives with the
 * handlers under the slot's number. */
struct slot {
    struct text key;
    bool stored;         /* the table has it, as of the start of the batch */
    bool stale;          /* ... from before the rebuild: it counts as absent */
    struct uuid read_id; /* message_id that was read */
    struct text json;    /* the state that was read */
    struct db_value *fields; /* the fields that were read */
    uint64_t unknown;        /* those that cannot be compared */
    bool present;            /* exists after what was applied so far */
    bool filled;             /* the handlers hold its state */
    bool dirty;              /* has to be written */
    size_t last_unit;        /* newest applied unit, NO_UNIT */
    size_t changed_by;       /* newest unit that changed it, or NO_UNIT */
    size_t entry; /* in the topic, of its newest state, or ..._NONE */
};

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
    struct map keys;      /* key -> slot number */
    struct slot *slots;
    size_t nslots, slots_capacity;
    size_t *unit_slot; /* slot number of each unit */
    size_t *unit_prev; /* the slot's applied unit before it */
    size_t unit_capacity;
    struct arena arena;
    struct buffer json;

    struct made_anew made; /* by the replay under way */
    size_t *asked;         /* slots whose epochs are asked for */
    size_t asked_capacity;
};

/* --- begin: which keys, and what is stored of them --------------------------
 */

static size_t slot_of(struct projection *p, struct text key)
{
    bool added;
    int64_t index = map_put(&p->keys, key, (int64_t)p->nslots, &added);

    if (!added)
        return (size_t)index;
    if (p->nslots == p->slots_capacity) {
        p->slots_capacity = p->slots_capacity == 0 ? 512 : 2 * p->nslots;
        p->slots = mem_grow(p->slots, p->slots_capacity, sizeof(*p->slots));
    }
    p->slots[p->nslots] = (struct slot){
        .key = key,
        .last_unit = NO_UNIT,
        .changed_by = NO_UNIT,
        .entry = PROJECTION_TOPIC_NONE,
    };
    return p->nslots++;
}

static enum status slot_stored(void *arg, size_t index, struct db_rows *row,
                               struct diag *diag)
{
    struct projection *p = arg;
    struct slot *slot = &p->slots[index];

    (void)diag;
    slot->stored = slot->present = true;
    slot->read_id = db_get_uuid(row, 0);
    slot->json = arena_copy(&p->arena, db_get_text(row, 1));
    slot->fields = arena_alloc(
        &p->arena, p->declaration->nfields * sizeof(*slot->fields) + 1);
    read_model_table_take(&p->table, row, &p->arena, slot->fields,
                          &slot->unknown);
    return STATUS_OK;
}

/* What an older rebuild, or none, has made counts as absent in a replay. One
 * written past the projection has no epoch, and is what it is. */
static void slot_epoch(void *arg, size_t index, int64_t epoch)
{
    struct projection *p = arg;
    struct slot *slot = &p->slots[p->asked[index]];

    slot->stale = epoch < p->replay_epoch;
    slot->present = !slot->stale;
    if (epoch == p->replay_epoch)
        made_anew_remember(&p->made, slot->key, &slot->read_id);
}

/* Asks for the epochs of the stored slots that are not known to be new. */
static enum status slot_epochs(struct projection *p, struct db *db,
                               struct diag *diag)
{
    struct text *keys = arena_alloc(&p->arena, p->nslots * sizeof(*keys) + 1);
    size_t count = 0;

    made_anew_begin(&p->made, p->replay_epoch);
    if (p->nslots > p->asked_capacity) {
        p->asked_capacity = p->nslots;
        p->asked = mem_grow(p->asked, p->nslots, sizeof(*p->asked));
    }
    for (size_t i = 0; i < p->nslots; i++) {
        const struct slot *slot = &p->slots[i];

        if (!slot->stored || made_anew_has(&p->made, slot->key, &slot->read_id))
            continue;
        p->asked[count] = i;
        keys[count++] = slot->key;
    }
    if (count == 0)
        return STATUS_OK;
    return read_model_table_epochs(&p->table, db, keys, count, slot_epoch, p,
                                   diag);
}

static enum status projection_begin(void *self, struct db *db,
                                    const struct unit *units, size_t count,
                                    int64_t replay_epoch, struct diag *diag)
{
    struct projection *p = self;
    struct text *keys;
    enum status status;

    p->units = units;
    p->nunits = count;
    p->replay_epoch = replay_epoch;
    p->nslots = 0;
    map_clear(&p->keys);
    arena_reset(&p->arena);
    projection_topic_begin(&p->topic);
    if (count > p->unit_capacity) {
        p->unit_capacity = count;
        p->unit_slot = mem_grow(p->unit_slot, count, sizeof(*p->unit_slot));
        p->unit_prev = mem_grow(p->unit_prev, count, sizeof(*p->unit_prev));
    }
    for (size_t i = 0; i < count; i++)
        p->unit_slot[i] = slot_of(p, units[i].key);

    handler_sql_batch_begin(p->sql, false);
    keys = arena_alloc(&p->arena, p->nslots * sizeof(*keys) + 1);
    for (size_t i = 0; i < p->nslots; i++)
        keys[i] = p->slots[i].key;
    status = db_lookup(db, &p->table.lookup, keys, p->nslots, slot_stored, p,
                       diag);
    if (status == STATUS_OK && replay_epoch > 0)
        status = slot_epochs(p, db, diag);
    return status;
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

static bool rebuild_slot(struct projection *p, struct slot *slot);

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
    struct slot *slot = &p->slots[number];

    if (slot->changed_by == NO_UNIT) {
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
    struct slot *slot = &p->slots[number];
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
    struct slot *slot = &p->slots[number];
    struct handler_call call = call_of(p, unit);
    bool tells = p->topic.on && !p->retraces;
    /* what a replay has not come to yet is still there for readers */
    bool existed = slot->present ||
                   (slot->stale && slot->changed_by == NO_UNIT);
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
static bool rebuild_slot(struct projection *p, struct slot *slot)
{
    size_t chain = NO_UNIT;
    struct failure failure;
    struct diag diag;
    bool same = true;

    slot->filled = slot->dirty = false;
    slot->present = slot->stored && !slot->stale;
    slot->changed_by = NO_UNIT;
    p->retraces = true;
    /* turn the chain round: oldest first */
    for (size_t unit = slot->last_unit; unit != NO_UNIT;) {
        size_t before = p->unit_prev[unit];

        p->unit_prev[unit] = chain;
        chain = unit;
        unit = before;
    }
    slot->last_unit = NO_UNIT;
    for (size_t unit = chain; same && unit != NO_UNIT;) {
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
    struct slot *slot = &p->slots[p->unit_slot[unit]];
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
    const struct slot *slot = &p->slots[number];
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
    assert(slot->filled && slot->last_unit != NO_UNIT);
    status = encode(p, number, slot->last_unit, fields, &row->state, failure);
    if (status != STATUS_OK)
        return status;
    row->message_id = slot->entry != PROJECTION_TOPIC_NONE
                          ? projection_topic_id(&p->topic, slot->entry)
                          : uuid_v7(p->ids, clock_now(p->clock));
    if (p->replay_epoch > 0)
        made_anew_remember(&p->made, slot->key, &row->message_id);
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
        rows[i] = arena_alloc(&p->arena, p->nslots * sizeof(**rows) + 1);
    for (size_t i = 0; i < p->nslots; i++) {
        const struct slot *slot = &p->slots[i];
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

struct finding {
    struct projection *p;
    struct read_model_row *rows;
};

static enum status row_found(void *arg, size_t index, struct db_rows *row,
                             struct diag *diag)
{
    const struct finding *finding = arg;
    struct projection *p = finding->p;
    struct read_model_row *found = &finding->rows[index];

    (void)diag;
    found->found = true;
    found->read_id = db_get_uuid(row, 0);
    if (p->topic.on)
        (void)projection_topic_add(
            &p->topic, PROJECTION_TOPIC_NONE, NULL,
            uuid_v7(p->ids, clock_now(p->clock)), found->key,
            arena_copy(&p->arena, db_get_text(row, 1)), true);
    return STATUS_OK;
}

/* Whoever deletes past a batch has the checkpoints locked, as it has. */
static enum status ask_topic(struct projection *p, struct db *db,
                             struct diag *diag)
{
    struct read_model_switch state;
    enum status status = read_model_switch_read(
        db, p->catalog, p->declaration->name, &p->arena, &state, diag);

    p->topic.on = status == STATUS_OK && state.on;
    projection_topic_begin(&p->topic);
    return status;
}

/* Deletes those of the keys that are stored, and the epochs of all. */
static enum status delete_keys(struct projection *p, struct db *db,
                               const struct text *keys, size_t count,
                               struct diag *diag)
{
    struct read_model_row *rows = arena_alloc_zero(&p->arena,
                                                   count * sizeof(*rows) + 1);
    struct finding finding = {p, rows};
    size_t found = 0;
    enum status status = ask_topic(p, db, diag);

    for (size_t i = 0; i < count; i++)
        rows[i].key = keys[i];
    if (status == STATUS_OK)
        status = db_lookup(db, &p->table.lookup, keys, count, row_found,
                           &finding, diag);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].found)
            rows[found++] = rows[i];
    }
    if (status == STATUS_OK)
        status = read_model_table_write(&p->table, db, READ_MODEL_DELETE, rows,
                                        found, &p->arena, diag);
    if (status == STATUS_OK)
        status = read_model_table_forget(&p->table, db, keys, count, diag);
    if (status == STATUS_OK && p->topic.on)
        status = projection_topic_send(&p->topic, db, clock_now(p->clock),
                                       &p->arena, diag);
    return status;
}

static enum status projection_sweep(void *self, struct db *db, int64_t epoch,
                                    size_t limit, struct buffer *after,
                                    bool *more, struct diag *diag)
{
    struct projection *p = self;
    struct text *keys;
    size_t count;
    enum status status;

    arena_reset(&p->arena);
    keys = arena_alloc(&p->arena, limit * sizeof(*keys));
    status = read_model_table_stale(&p->table, db, epoch, buffer_text(after),
                                    keys, limit, &count, &p->arena, diag);
    *more = status == STATUS_OK && count > 0;
    if (!*more)
        return status;
    status = delete_keys(p, db, keys, count, diag);
    buffer_clear(after);
    buffer_append_text(after, keys[count - 1]);
    return status;
}

static enum status projection_remove(void *self, struct db *db, struct text key,
                                     struct diag *diag)
{
    struct projection *p = self;

    arena_reset(&p->arena);
    return delete_keys(p, db, &key, 1, diag);
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
    map_free(&p->keys);
    mem_free(p->slots);
    mem_free(p->unit_slot);
    mem_free(p->unit_prev);
    made_anew_free(&p->made);
    mem_free(p->asked);
    arena_free(&p->arena);
    buffer_free(&p->json);
    mem_free(p);
}

struct applier projection_applier(struct projection *p)
{
    return (struct applier){.ops = &projection_ops, .self = p};
}
