#include "outbox/outbox_list.h"

struct reading {
    struct arena *arena;
    struct outbox_rows *rows;
    size_t limit;
};

static const char *text_at(const struct reading *reading, struct db_rows *row,
                           size_t column)
{
    return db_is_null(row, column)
               ? NULL
               : arena_string(reading->arena, db_get_text(row, column));
}

static int64_t time_at(struct db_rows *row, size_t column)
{
    return db_is_null(row, column) ? 0 : db_get_timestamp(row, column);
}

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct reading *reading = arg;
    struct outbox_rows *rows = reading->rows;

    (void)diag;
    if (rows->count == reading->limit) {
        rows->more = true;
        return STATUS_OK;
    }
    rows->items = arena_grow(reading->arena, rows->items, rows->count,
                             sizeof(*rows->items));
    rows->items[rows->count++] = (struct outbox_row){
        .id = text_at(reading, row, 0),
        .route = text_at(reading, row, 1),
        .event_id = text_at(reading, row, 2),
        .type = text_at(reading, row, 3),
        .tenant_id = text_at(reading, row, 4),
        .execution_id = text_at(reading, row, 5),
        .correlation_id = text_at(reading, row, 6),
        .causation_id = text_at(reading, row, 7),
        .ordering_key = text_at(reading, row, 8),
        .metadata = text_at(reading, row, 9),
        .payload = text_at(reading, row, 10),
        .status = text_at(reading, row, 11),
        .attempts = db_get_int64(row, 12),
        .last_error = text_at(reading, row, 13),
        .occurred_at = time_at(row, 14),
        .created_at = time_at(row, 15),
        .available_at = time_at(row, 16),
        .published_at = time_at(row, 17),
    };
    return STATUS_OK;
}

static struct db_value string_or_null(const char *string)
{
    return string != NULL ? db_string(string) : db_null();
}

enum status outbox_list(struct db *db, const struct catalog *catalog,
                        const struct outbox_filter *filter, size_t limit,
                        bool payloads, struct arena *arena,
                        struct outbox_rows *rows, struct diag *diag)
{
    const struct db_value params[] = {
        string_or_null(filter->route), string_or_null(filter->status),
        string_or_null(filter->type),  string_or_null(filter->id),
        db_boolean(payloads),          db_integer((int64_t)limit + 1),
    };
    struct reading reading = {arena, rows, limit};

    *rows = (struct outbox_rows){.count = 0};
    return db_rows_each(db, catalog_sql(catalog, SQL_OUTBOX_LIST), params, 6,
                        take_row, &reading, diag);
}

struct counting {
    struct arena *arena;
    struct outbox_pending **items;
    size_t *count;
};

static enum status take_count(void *arg, struct db_rows *row, struct diag *diag)
{
    struct counting *counting = arg;

    (void)diag;
    *counting->items = arena_grow(counting->arena, *counting->items,
                                  *counting->count, sizeof(**counting->items));
    (*counting->items)[(*counting->count)++] = (struct outbox_pending){
        .route = arena_string(counting->arena, db_get_text(row, 0)),
        .count = db_get_int64(row, 1),
        .oldest_at = db_get_timestamp(row, 2),
    };
    return STATUS_OK;
}

enum status outbox_list_pending(struct db *db, const struct catalog *catalog,
                                struct arena *arena,
                                struct outbox_pending **items, size_t *count,
                                struct diag *diag)
{
    struct counting counting = {arena, items, count};

    *items = NULL;
    *count = 0;
    return db_rows_each(db, catalog_sql(catalog, SQL_OUTBOX_PENDING), NULL, 0,
                        take_count, &counting, diag);
}
