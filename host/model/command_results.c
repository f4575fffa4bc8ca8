#include "model/command_results.h"

enum { COLUMN_COUNT = 6 };

static const struct db_column COLUMNS[COLUMN_COUNT] = {
    {"id", DB_UUID, DB_KEY},           {"aggregate_type", DB_TEXT, DB_SET},
    {"aggregate_id", DB_TEXT, DB_SET}, {"name", DB_TEXT, DB_SET},
    {"outcome", DB_TEXT, DB_SET},      {"created_at", DB_TIMESTAMP, DB_SET},
};

struct reading {
    struct arena *arena;
    struct command_result *result;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct reading *reading = arg;
    struct command_result *result = reading->result;

    (void)diag;
    result->aggregate_type = arena_copy(reading->arena, db_get_text(row, 0));
    result->aggregate_id = arena_copy(reading->arena, db_get_text(row, 1));
    result->name = arena_copy(reading->arena, db_get_text(row, 2));
    result->outcome = arena_copy(reading->arena, db_get_text(row, 3));
    return STATUS_OK;
}

enum status command_result_read(struct db *db, const struct catalog *catalog,
                                struct arena *arena,
                                struct command_result *result,
                                struct diag *diag)
{
    const struct db_value params[] = {db_uuid(result->id)};
    struct reading reading = {arena, result};

    result->outcome = TEXT_NONE;
    return db_rows_each(db, catalog_sql(catalog, SQL_COMMAND_RESULT_READ),
                        params, 1, take_row, &reading, diag);
}

enum status command_result_write(struct db *db, const struct names *names,
                                 const struct command_result *result,
                                 int64_t now_us, struct arena *arena,
                                 struct diag *diag)
{
    struct db_value *row = arena_alloc(arena, COLUMN_COUNT * sizeof(*row));
    struct db_table *table = arena_alloc(arena, sizeof(*table));

    *table = (struct db_table){
        .name = names->table[TABLE_COMMAND_RESULTS],
        .columns = COLUMNS,
        .ncolumns = COLUMN_COUNT,
        .origin = DB_HOST,
    };
    row[0] = db_uuid(result->id);
    row[1] = db_text_value(result->aggregate_type);
    row[2] = db_text_value(result->aggregate_id);
    row[3] = db_text_value(result->name);
    row[4] = db_text_value(result->outcome);
    row[5] = db_timestamp(now_us);
    return db_queue_bulk(db, DB_INSERT, table, row, 1, 0, diag);
}

enum status command_results_expire(struct db *db, const struct catalog *catalog,
                                   int64_t before_us, int64_t limit,
                                   int64_t *deleted, struct diag *diag)
{
    const struct db_value params[] = {db_timestamp(before_us),
                                      db_integer(limit)};

    return db_execute(db, catalog_sql(catalog, SQL_COMMAND_RESULTS_EXPIRE),
                      params, 2, deleted, diag);
}
