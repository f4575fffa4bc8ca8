#include "model/saga_retention.h"

#include "base/memory.h"
#include "model/saga_deadline.h"

enum { COLUMNS = 2 };

static const struct db_column REMOVE[COLUMNS] = {
    {"id", DB_UUID, DB_KEY},
    {"version", DB_INT64, DB_GUARD},
};

struct expired {
    struct uuid id;
    struct text instance; /* the id as text */
    const char *saga_type;
    struct text saga_id;
    int64_t version;
};

struct batch {
    struct arena arena;
    struct expired *rows;
    size_t count;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct batch *batch = arg;
    struct expired *expired = &batch->rows[batch->count++];
    char id[UUID_TEXT_LEN + 1];

    (void)diag;
    expired->id = db_get_uuid(row, 0);
    uuid_format(&expired->id, id);
    expired->instance = arena_copy(&batch->arena, text_of(id));
    expired->saga_type = arena_string(&batch->arena, db_get_text(row, 1));
    expired->saga_id = arena_copy(&batch->arena, db_get_text(row, 2));
    expired->version = db_get_int64(row, 3);
    return STATUS_OK;
}

/* One statement for each run of rows of one type. */
static enum status delete_deadlines(struct batch *batch, struct db *db,
                                    const struct catalog *catalog,
                                    struct diag *diag)
{
    struct text *ids = arena_alloc(&batch->arena, batch->count * sizeof(*ids));
    enum status status = STATUS_OK;

    for (size_t at = 0; status == STATUS_OK && at < batch->count;) {
        const char *type = batch->rows[at].saga_type;
        size_t count = 0;

        while (at < batch->count &&
               strcmp(batch->rows[at].saga_type, type) == 0)
            ids[count++] = batch->rows[at++].saga_id;
        status = saga_deadlines_delete(db, catalog, type, ids, count, diag);
    }
    return status;
}

static enum status delete_steps(struct batch *batch, struct db *db,
                                const struct catalog *catalog,
                                struct diag *diag)
{
    struct text *ids = arena_alloc(&batch->arena, batch->count * sizeof(*ids));
    struct db_value instances;

    for (size_t i = 0; i < batch->count; i++)
        ids[i] = batch->rows[i].instance;
    instances = db_texts(ids, batch->count);
    return db_execute(db, catalog_sql(catalog, SQL_SAGA_STEPS_DELETE),
                      &instances, 1, NULL, diag);
}

static enum status delete_instances(struct batch *batch, struct db *db,
                                    const struct names *names,
                                    struct diag *diag)
{
    const struct db_table table = {
        .name = names->table[TABLE_SAGA_INSTANCES],
        .columns = REMOVE,
        .ncolumns = COLUMNS,
        .origin = DB_HOST,
    };
    struct db_value *values = arena_alloc(
        &batch->arena, batch->count * COLUMNS * sizeof(*values));
    enum status status;

    for (size_t i = 0; i < batch->count; i++) {
        values[COLUMNS * i] = db_uuid(batch->rows[i].id);
        values[COLUMNS * i + 1] = db_integer(batch->rows[i].version);
    }
    status = db_queue_bulk(db, DB_DELETE, &table, values, batch->count, 0,
                           diag);
    return status == STATUS_OK ? db_flush(db, NULL, diag) : status;
}

enum status saga_retention_delete(struct db *db, const struct catalog *catalog,
                                  const struct names *names, int64_t before_us,
                                  size_t limit, size_t *count,
                                  struct diag *diag)
{
    const struct db_value params[] = {db_timestamp(before_us),
                                      db_integer((int64_t)limit)};
    struct batch batch = {.arena = ARENA_EMPTY};
    enum status status;

    batch.rows = arena_alloc(&batch.arena, limit * sizeof(*batch.rows));
    status = db_rows_each(db, catalog_sql(catalog, SQL_SAGA_INSTANCES_EXPIRED),
                          params, 2, take_row, &batch, diag);
    if (status == STATUS_OK && batch.count > 0) {
        status = delete_deadlines(&batch, db, catalog, diag);
        if (status == STATUS_OK)
            status = delete_steps(&batch, db, catalog, diag);
        if (status == STATUS_OK)
            status = delete_instances(&batch, db, names, diag);
    }
    *count = batch.count;
    arena_free(&batch.arena);
    return status;
}
