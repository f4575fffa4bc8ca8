#include "model/saga_step_store.h"

#include "model/saga_declared.h"

#include <string.h>

/* What changes, behind what does not. */
enum {
    COLUMN_ID,
    COLUMN_STATE,
    COLUMN_COMPENSATION_ID,
    COLUMN_SENDS,
    COLUMN_COMPENSATION_SENDS,
    COLUMN_MESSAGE,
    COLUMN_DEADLINE_AT,
    COLUMN_REASON,
    COLUMN_ANSWERED_AT,
    COLUMN_COMPENSATION_SENT_AT,
    COLUMN_COMPENSATED_AT,
    COLUMN_UPDATED_AT,
    UPDATE_COLUMNS,
    COLUMN_INSTANCE = UPDATE_COLUMNS,
    COLUMN_SAGA_TYPE,
    COLUMN_SAGA_ID,
    COLUMN_STEP_NO,
    COLUMN_NAME,
    COLUMN_ROUND,
    COLUMN_COMMAND_ID,
    COLUMN_SENT_AT,
    INSERT_COLUMNS
};

static const struct db_column columns[INSERT_COLUMNS] = {
    [COLUMN_ID] = {"id", DB_UUID, DB_KEY},
    [COLUMN_STATE] = {"state", DB_TEXT, DB_SET},
    [COLUMN_COMPENSATION_ID] = {"compensation_id", DB_UUID, DB_SET},
    [COLUMN_SENDS] = {"sends", DB_INT64, DB_SET},
    [COLUMN_COMPENSATION_SENDS] = {"compensation_sends", DB_INT64, DB_SET},
    [COLUMN_MESSAGE] = {"message_json", DB_TEXT, DB_SET},
    [COLUMN_DEADLINE_AT] = {"deadline_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_REASON] = {"failure_reason", DB_TEXT, DB_SET},
    [COLUMN_ANSWERED_AT] = {"answered_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_COMPENSATION_SENT_AT] = {"compensation_sent_at", DB_TIMESTAMP,
                                     DB_SET},
    [COLUMN_COMPENSATED_AT] = {"compensated_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_UPDATED_AT] = {"updated_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_INSTANCE] = {"instance_id", DB_UUID, DB_SET},
    [COLUMN_SAGA_TYPE] = {"saga_type", DB_TEXT, DB_SET},
    [COLUMN_SAGA_ID] = {"saga_id", DB_TEXT, DB_SET},
    [COLUMN_STEP_NO] = {"step_no", DB_INT64, DB_SET},
    [COLUMN_NAME] = {"step_name", DB_TEXT, DB_SET},
    [COLUMN_ROUND] = {"round", DB_INT64, DB_SET},
    [COLUMN_COMMAND_ID] = {"command_id", DB_UUID, DB_SET},
    [COLUMN_SENT_AT] = {"sent_at", DB_TIMESTAMP, DB_SET},
};

void saga_step_store_init(struct saga_step_store *store, const char *saga_type,
                          const struct names *names,
                          const struct catalog *catalog)
{
    const char *name = names->table[TABLE_SAGA_STEPS];

    *store = (struct saga_step_store){
        .saga_type = text_of(saga_type),
        .insert = {.name = name,
                   .columns = columns,
                   .ncolumns = INSERT_COLUMNS,
                   .origin = DB_HOST},
        .update = {.name = name,
                   .columns = columns,
                   .ncolumns = UPDATE_COLUMNS,
                   .origin = DB_HOST},
        .load = catalog_sql(catalog, SQL_SAGA_STEPS_LOAD),
    };
}

/* --- reading -------------------------------------------------------------- */

struct load {
    struct text saga_type;
    const struct saga_step_owner *owners;
    struct arena *arena;
};

static struct text text_or_none(struct load *load, struct db_rows *row,
                                size_t column)
{
    return db_is_null(row, column)
               ? TEXT_NONE
               : arena_copy(load->arena, db_get_text(row, column));
}

static int64_t time_or_none(struct db_rows *row, size_t column)
{
    return db_is_null(row, column) ? 0 : db_get_timestamp(row, column);
}

static size_t find_step(const struct saga_steps *steps, struct text name)
{
    for (size_t i = 0; i < steps->nrules; i++)
        if (text_equal(steps->rules[i].name, name))
            return i;
    return SAGA_STEP_GONE;
}

static enum status check_row(const struct load *load,
                             const struct saga_step_owner *owner,
                             const struct saga_step_row *row, struct text state,
                             bool known, struct diag *diag)
{
    if (!known)
        return diag_set(diag, STATUS_PERMANENT,
                        "step '" TEXT_FORMAT "' of saga '" TEXT_FORMAT
                        "' of type '" TEXT_FORMAT
                        "' is in the state '" TEXT_FORMAT
                        "', which this program does not know",
                        TEXT_ARGS(row->name), TEXT_ARGS(owner->saga_id),
                        TEXT_ARGS(load->saga_type), TEXT_ARGS(state));
    if (owner->steps->nrules > 0 && saga_declared_lacks(owner->steps, row)) {
        struct buffer lacks = BUFFER_EMPTY;

        saga_declared_describe(owner->saga_id, row->name, state, &lacks);
        diag_set(diag, STATUS_REFUSED, "%s", lacks.data);
        buffer_free(&lacks);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct load *load = arg;
    const struct saga_step_owner *owner = &load->owners[db_get_int64(row, 0)];
    struct saga_steps *steps = owner->steps;
    struct text state = db_get_text(row, 4);
    struct saga_step_row *r;
    bool known;

    steps->rows = arena_grow(steps->arena, steps->rows, steps->nrows,
                             sizeof(*steps->rows));
    r = &steps->rows[steps->nrows++];
    *r = (struct saga_step_row){
        .id = db_get_uuid(row, 1),
        .name = arena_copy(load->arena, db_get_text(row, 2)),
        .round = (int)db_get_int64(row, 3),
        .command_id = db_get_uuid(row, 5),
        .has_compensation_id = !db_is_null(row, 6),
        .sends = (int)db_get_int64(row, 7),
        .compensation_sends = (int)db_get_int64(row, 8),
        .message = text_or_none(load, row, 9),
        .reason = text_or_none(load, row, 10),
        .deadline_at = time_or_none(row, 11),
        .sent_at = db_get_timestamp(row, 12),
        .answered_at = time_or_none(row, 13),
        .compensation_sent_at = time_or_none(row, 14),
        .compensated_at = time_or_none(row, 15),
    };
    if (r->has_compensation_id)
        r->compensation_id = db_get_uuid(row, 6);
    r->step = find_step(steps, r->name);
    known = saga_step_state_parse(state, &r->state);
    return check_row(load, owner, r, state, known, diag);
}

enum status saga_step_store_load(const struct saga_step_store *store,
                                 struct db *db,
                                 const struct saga_step_owner *owners,
                                 size_t count, struct arena *arena,
                                 struct diag *diag)
{
    struct text *ids = arena_alloc(arena, count * sizeof(*ids) + 1);
    struct load load = {store->saga_type, owners, arena};
    struct db_value param;

    if (count == 0)
        return STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        char text[UUID_TEXT_LEN + 1];

        uuid_format(&owners[i].steps->instance, text);
        ids[i] = arena_copy(arena, text_of(text));
    }
    param = db_texts(ids, count);
    return db_rows_each(db, store->load, &param, 1, take_row, &load, diag);
}

enum status saga_step_store_read(struct db *db, const struct catalog *catalog,
                                 struct text saga_type, struct text saga_id,
                                 struct saga_steps *steps, struct diag *diag)
{
    const struct saga_step_owner owner = {saga_id, steps};
    struct load load = {saga_type, &owner, steps->arena};
    const struct db_value params[] = {db_text_value(saga_type),
                                      db_text_value(saga_id)};

    return db_rows_each(db, catalog_sql(catalog, SQL_SAGA_STEPS_READ), params,
                        2, take_row, &load, diag);
}

/* --- writing -------------------------------------------------------------- */

static struct db_value time_value(int64_t at)
{
    return at != 0 ? db_timestamp(at) : db_null();
}

static void fill_changing(const struct saga_step_row *row, int64_t now_us,
                          struct db_value *v)
{
    v[COLUMN_ID] = db_uuid(row->id);
    v[COLUMN_STATE] = db_string(saga_step_state_word(row->state));
    v[COLUMN_COMPENSATION_ID] = row->has_compensation_id
                                    ? db_uuid(row->compensation_id)
                                    : db_null();
    v[COLUMN_SENDS] = db_integer(row->sends);
    v[COLUMN_COMPENSATION_SENDS] = db_integer(row->compensation_sends);
    v[COLUMN_MESSAGE] = db_text_value(row->message);
    v[COLUMN_DEADLINE_AT] = time_value(row->deadline_at);
    v[COLUMN_REASON] = db_text_value(row->reason);
    v[COLUMN_ANSWERED_AT] = time_value(row->answered_at);
    v[COLUMN_COMPENSATION_SENT_AT] = time_value(row->compensation_sent_at);
    v[COLUMN_COMPENSATED_AT] = time_value(row->compensated_at);
    v[COLUMN_UPDATED_AT] = db_timestamp(now_us);
}

static void fill_made(const struct saga_step_store *store,
                      const struct saga_step_owner *owner,
                      const struct saga_step_row *row, int64_t now_us,
                      struct db_value *v)
{
    fill_changing(row, now_us, v);
    v[COLUMN_INSTANCE] = db_uuid(owner->steps->instance);
    v[COLUMN_SAGA_TYPE] = db_text_value(store->saga_type);
    v[COLUMN_SAGA_ID] = db_text_value(owner->saga_id);
    v[COLUMN_STEP_NO] = db_integer((int64_t)row->step + 1);
    v[COLUMN_NAME] = db_text_value(row->name);
    v[COLUMN_ROUND] = db_integer(row->round);
    v[COLUMN_COMMAND_ID] = db_uuid(row->command_id);
    v[COLUMN_SENT_AT] = db_timestamp(row->sent_at);
}

/* What is to be written: rows that were made, and others. */
struct saving {
    struct db_value *made, *changed;
    size_t nmade, nchanged;
};

static void count_rows(const struct saga_steps *steps, struct saving *saving)
{
    for (size_t i = 0; i < steps->nrows; i++) {
        saving->nmade += steps->rows[i].made;
        saving->nchanged += steps->rows[i].changed && !steps->rows[i].made;
    }
}

enum status saga_step_store_save(const struct saga_step_store *store,
                                 struct db *db,
                                 const struct saga_step_owner *owners,
                                 size_t count, struct uuid_source *ids,
                                 int64_t now_us, int64_t tag,
                                 struct arena *arena, struct diag *diag)
{
    struct saving saving = {.nmade = 0};
    struct db_value *made, *changed;
    enum status status = STATUS_OK;

    for (size_t i = 0; i < count; i++)
        count_rows(owners[i].steps, &saving);
    made = saving.made = arena_alloc(
        arena, saving.nmade * INSERT_COLUMNS * sizeof(*made) + 1);
    changed = saving.changed = arena_alloc(
        arena, saving.nchanged * UPDATE_COLUMNS * sizeof(*changed) + 1);
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < owners[i].steps->nrows; r++) {
            struct saga_step_row *row = &owners[i].steps->rows[r];

            if (row->made) {
                row->id = uuid_v7(ids, now_us);
                fill_made(store, &owners[i], row, now_us, made);
                made += INSERT_COLUMNS;
            } else if (row->changed) {
                fill_changing(row, now_us, changed);
                changed += UPDATE_COLUMNS;
            }
        }
    if (saving.nmade > 0)
        status = db_queue_bulk(db, DB_INSERT, &store->insert, saving.made,
                               saving.nmade, tag, diag);
    if (status == STATUS_OK && saving.nchanged > 0)
        status = db_queue_bulk(db, DB_UPDATE, &store->update, saving.changed,
                               saving.nchanged, tag, diag);
    return status;
}
