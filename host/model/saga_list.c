#include "model/saga_list.h"

struct reading {
    struct arena *arena;
    struct saga_list *list;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct reading *reading = arg;
    struct saga_list *list = reading->list;
    struct saga_listed *item;

    (void)diag;
    list->items = arena_grow(reading->arena, list->items, list->count,
                             sizeof(*list->items));
    item = &list->items[list->count++];
    *item = (struct saga_listed){
        .instance = {.stored = true,
                     .id = db_get_uuid(row, 0),
                     .version = db_get_int64(row, 3),
                     .completed = !db_is_null(row, 4)},
        .type = arena_copy(reading->arena, db_get_text(row, 1)),
    };
    item->instance.saga_id = arena_copy(reading->arena, db_get_text(row, 2));
    if (item->instance.completed)
        item->instance.completed_at = db_get_timestamp(row, 4);
    return STATUS_OK;
}

enum status saga_list_read(struct db *db, const struct catalog *catalog,
                           const struct saga_filter *filter, size_t limit,
                           struct arena *arena, struct saga_list *list,
                           struct diag *diag)
{
    const struct db_value params[] = {
        filter->type != NULL ? db_string(filter->type) : db_null(),
        filter->saga_id != NULL ? db_string(filter->saga_id) : db_null(),
        filter->active != filter->completed ? db_boolean(filter->active)
                                            : db_null(),
        db_integer((int64_t)limit),
    };
    struct reading reading = {arena, list};
    bool found;
    enum status status;

    *list = (struct saga_list){.count = 0};
    status = db_query_int64(db, catalog_sql(catalog, SQL_SAGAS_COUNT), params,
                            3, &list->total, &found, diag);
    if (status != STATUS_OK)
        return status;
    return db_rows_each(db, catalog_sql(catalog, SQL_SAGAS_LIST), params, 4,
                        take_row, &reading, diag);
}

int64_t saga_begun_at(const struct uuid *id)
{
    int64_t ms = 0;

    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id->bytes[i];
    return ms * 1000;
}
