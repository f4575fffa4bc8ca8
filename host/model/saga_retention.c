#include "model/saga_retention.h"

#include "model/saga_delete.h"

struct batch {
    struct arena arena;
    struct saga_deleted *rows;
    size_t count;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct batch *batch = arg;
    struct saga_deleted *expired = &batch->rows[batch->count++];

    (void)diag;
    expired->id = db_get_uuid(row, 0);
    expired->saga_type = arena_string(&batch->arena, db_get_text(row, 1));
    expired->saga_id = arena_copy(&batch->arena, db_get_text(row, 2));
    expired->version = db_get_int64(row, 3);
    return STATUS_OK;
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
    if (status == STATUS_OK && batch.count > 0)
        status = saga_delete_rows(db, catalog, names, batch.rows, batch.count,
                                  &batch.arena, diag);
    *count = batch.count;
    arena_free(&batch.arena);
    return status;
}
