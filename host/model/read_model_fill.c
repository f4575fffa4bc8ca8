#include "model/read_model_fill.h"

#include "base/map.h"
#include "topic/read_model_append.h"
#include "topic/read_model_switch.h"

/* Read models and bytes of states, about, of one batch: batches of the
 * projection wait for it. */
#define BATCH_ROWS  500
#define BATCH_BYTES (4 << 20)

struct batch {
    const struct read_model_fill *fill;
    struct db *db;
    struct read_model_switch from;
    struct read_model_message *found; /* in the order of their keys */
    size_t count;
    bool last; /* there are none behind them */
    struct arena arena;
};

static enum status take_rows(struct batch *batch, struct db_rows *rows,
                             struct diag *diag)
{
    size_t bytes = 0;
    bool more = false;
    enum status status;

    batch->last = true;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        struct read_model_message *m = &batch->found[batch->count++];

        *m = (struct read_model_message){
            .key = arena_copy(&batch->arena, db_get_text(rows, 0)),
            .id = db_get_uuid(rows, 1),
            .state = arena_copy(&batch->arena, db_get_text(rows, 2)),
            .cascade_depth = 1,
        };
        bytes += m->state.len;
        batch->last = false;
        if (batch->count == BATCH_ROWS || bytes >= BATCH_BYTES)
            return STATUS_OK;
        batch->last = true;
    }
    return status;
}

static enum status read_rows(struct batch *batch, struct diag *diag)
{
    struct db_value params[2];
    struct buffer text = BUFFER_EMPTY;
    size_t nparams = 0;
    struct db_rows *rows;
    struct db_sql sql;
    enum status status;

    batch->found = arena_alloc(&batch->arena,
                               BATCH_ROWS * sizeof(*batch->found));
    buffer_append_string(&text, "SELECT \"read_model_id\", \"message_id\", "
                                "\"state\" FROM ");
    db_print_name(batch->db, batch->fill->declaration->table, &text);
    if (batch->from.through.data != NULL) {
        params[nparams++] = db_text_value(batch->from.through);
        buffer_append_string(&text, " WHERE \"read_model_id\" > ?1");
    }
    params[nparams++] = db_integer(BATCH_ROWS);
    buffer_printf(&text, " ORDER BY \"read_model_id\" LIMIT ?%zu", nparams);
    sql = db_sql_make(buffer_text(&text), DB_HOST);
    status = db_query(batch->db, &sql, params, nparams, &rows, diag);
    if (status == STATUS_OK) {
        status = take_rows(batch, rows, diag);
        db_rows_close(rows);
    }
    buffer_free(&text);
    return status;
}

struct known {
    struct map ids;
    struct arena *arena;
};

static enum status take_id(void *arg, struct db_rows *row, struct diag *diag)
{
    struct known *known = arg;
    char *id = arena_alloc(known->arena, UUID_TEXT_LEN + 1);
    struct uuid uuid = db_get_uuid(row, 0);
    bool added;

    (void)diag;
    uuid_format(&uuid, id);
    (void)map_put(&known->ids, (struct text){id, UUID_TEXT_LEN}, 1, &added);
    return STATUS_OK;
}

/* Those whose newest change is in the topic already are left out. */
static enum status leave_known(struct batch *batch, size_t *left,
                               struct diag *diag)
{
    struct known known = {.arena = &batch->arena};
    struct text *ids = arena_alloc(&batch->arena,
                                   batch->count * sizeof(*ids) + 1);
    struct db_value param;
    enum status status;

    for (size_t i = 0; i < batch->count; i++) {
        char *id = arena_alloc(&batch->arena, UUID_TEXT_LEN + 1);

        uuid_format(&batch->found[i].id, id);
        ids[i] = (struct text){id, UUID_TEXT_LEN};
    }
    param = db_texts(ids, batch->count);
    status = db_rows_each(batch->db,
                          catalog_sql(batch->fill->catalog, SQL_READ_MODEL_IDS),
                          &param, 1, take_id, &known, diag);
    *left = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (map_get(&known.ids, ids[i]) == MAP_ABSENT)
            batch->found[(*left)++] = batch->found[i];
    map_free(&known.ids);
    return status;
}

static enum status append(struct batch *batch, struct diag *diag)
{
    const struct read_model_fill *fill = batch->fill;
    const char *projection = fill->declaration->name;
    int64_t now = clock_now(fill->clock);
    struct text through = batch->count > 0 ? batch->found[batch->count - 1].key
                                           : batch->from.through;
    struct read_model_writer writer;
    size_t left = 0;
    enum status status = STATUS_OK;

    read_model_writer_init(&writer, projection, fill->names, fill->catalog,
                           fill->partitions, fill->notify);
    if (batch->count > 0)
        status = leave_known(batch, &left, diag);
    if (status == STATUS_OK)
        status = read_model_switch_filled(batch->db, fill->catalog, projection,
                                          batch->from.through, through,
                                          batch->last, now, diag);
    if (status == STATUS_OK)
        status = read_model_append(&writer, batch->db, now, batch->found, left,
                                   &batch->arena, diag);
    return status == STATUS_OK ? db_commit(batch->db, NULL, diag) : status;
}

static enum status run(struct batch *batch, bool *more, struct diag *diag)
{
    const struct read_model_fill *fill = batch->fill;
    const char *projection = fill->declaration->name;
    enum status status = read_model_switch_lock(batch->db, fill->catalog,
                                                projection, diag);

    *more = false;
    if (status == STATUS_OK)
        status = read_model_switch_read(batch->db, fill->catalog, projection,
                                        &batch->arena, &batch->from, diag);
    if (status != STATUS_OK || !batch->from.on || batch->from.filled)
        return status;
    status = read_rows(batch, diag);
    if (status == STATUS_OK)
        status = append(batch, diag);
    *more = status == STATUS_OK && !batch->last;
    return status;
}

enum status read_model_fill_batch(const struct read_model_fill *fill,
                                  struct db *db, bool *more, struct diag *diag)
{
    struct batch batch = {.fill = fill, .db = db, .arena = ARENA_EMPTY};
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = run(&batch, more, diag);
    db_rollback(db);
    arena_free(&batch.arena);
    return status;
}
