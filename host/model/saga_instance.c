#include "model/saga_instance.h"

enum { INSERT_COLUMNS = 6, UPDATE_COLUMNS = 4, COMPLETE_COLUMNS = 5 };

static const struct db_column INSERT[INSERT_COLUMNS] = {
    {"id", DB_UUID, DB_KEY},       {"saga_type", DB_TEXT, DB_SET},
    {"saga_id", DB_TEXT, DB_SET},  {"state_json", DB_TEXT, DB_SET},
    {"version", DB_INT64, DB_SET}, {"completed_at", DB_TIMESTAMP, DB_SET},
};

static const struct db_column UPDATE[UPDATE_COLUMNS] = {
    {"id", DB_UUID, DB_KEY},
    {"state_json", DB_TEXT, DB_SET},
    {"version", DB_INT64, DB_SET},
    {"version", DB_INT64, DB_GUARD}, /* as it was read */
};

/* Most sagas go on: their index is spared. */
static const struct db_column COMPLETE[COMPLETE_COLUMNS] = {
    {"id", DB_UUID, DB_KEY},         {"state_json", DB_TEXT, DB_SET},
    {"version", DB_INT64, DB_SET},   {"completed_at", DB_TIMESTAMP, DB_SET},
    {"version", DB_INT64, DB_GUARD},
};

void saga_instances_init(struct saga_instances *instances,
                         const char *saga_type, const struct names *names,
                         const struct catalog *catalog)
{
    const char *name = names->table[TABLE_SAGA_INSTANCES];

    *instances = (struct saga_instances){
        .saga_type = text_of(saga_type),
        .insert = {.name = name,
                   .columns = INSERT,
                   .ncolumns = INSERT_COLUMNS,
                   .origin = DB_HOST},
        .update = {.name = name,
                   .columns = UPDATE,
                   .ncolumns = UPDATE_COLUMNS,
                   .origin = DB_HOST},
        .complete = {.name = name,
                     .columns = COMPLETE,
                     .ncolumns = COMPLETE_COLUMNS,
                     .origin = DB_HOST},
        .load = catalog_sql(catalog, SQL_SAGA_INSTANCES_LOAD),
    };
}

struct load {
    struct saga_instance *items;
    struct arena *arena;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct load *load = arg;
    struct saga_instance *item = &load->items[db_get_int64(row, 0)];

    (void)diag;
    item->stored = true;
    item->id = db_get_uuid(row, 1);
    item->version = db_get_int64(row, 2);
    item->completed = !db_is_null(row, 3);
    item->completed_at = item->completed ? db_get_timestamp(row, 3) : 0;
    item->state = arena_copy(load->arena, db_get_text(row, 4));
    return STATUS_OK;
}

enum status saga_instances_load(const struct saga_instances *instances,
                                struct db *db, struct saga_instance *items,
                                size_t count, struct arena *arena,
                                struct diag *diag)
{
    struct text *ids = arena_alloc(arena, count * sizeof(*ids) + 1);
    struct load load = {.items = items, .arena = arena};

    for (size_t i = 0; i < count; i++) {
        ids[i] = items[i].saga_id;
        items[i] = (struct saga_instance){.saga_id = ids[i]};
    }
    if (count == 0)
        return STATUS_OK;
    return db_rows_each(db, instances->load,
                        (struct db_value[]){db_text_value(instances->saga_type),
                                            db_texts(ids, count)},
                        2, take_row, &load, diag);
}

/* Far from where counting up would end. */
int64_t saga_instance_version(const struct uuid *id)
{
    uint64_t version = 0;

    for (int i = 8; i < 16; i++)
        version = version << 8 | id->bytes[i];
    return (int64_t)(version & UINT64_C(0x3fffffffffffffff));
}

static struct db_value completed_at(const struct saga_instance *row)
{
    return row->completed ? db_timestamp(row->completed_at) : db_null();
}

enum status saga_instances_insert(const struct saga_instances *instances,
                                  struct db *db,
                                  const struct saga_instance *const *rows,
                                  size_t count, int64_t tag,
                                  struct arena *arena, struct diag *diag)
{
    struct db_value *values = arena_alloc(
        arena, count * INSERT_COLUMNS * sizeof(*values) + 1);
    struct db_value *v = values;

    for (size_t i = 0; i < count; i++) {
        *v++ = db_uuid(rows[i]->id);
        *v++ = db_text_value(instances->saga_type);
        *v++ = db_text_value(rows[i]->saga_id);
        *v++ = db_text_value(rows[i]->state);
        *v++ = db_integer(rows[i]->version);
        *v++ = completed_at(rows[i]);
    }
    if (count == 0)
        return STATUS_OK;
    return db_queue_bulk(db, DB_INSERT, &instances->insert, values, count, tag,
                         diag);
}

static struct db_value *
put_update(struct db_value *v, const struct saga_instance *row, bool completes)
{
    *v++ = db_uuid(row->id);
    *v++ = db_text_value(row->state);
    *v++ = db_integer(row->version + 1);
    if (completes)
        *v++ = completed_at(row);
    *v++ = db_integer(row->version);
    return v;
}

/* Those that complete now, or the others. */
static enum status update(const struct saga_instances *instances, struct db *db,
                          const struct saga_instance *const *rows, size_t count,
                          bool completes, int64_t tag, struct arena *arena,
                          struct diag *diag)
{
    const struct db_table *table = completes ? &instances->complete
                                             : &instances->update;
    struct db_value *values = arena_alloc(
        arena, count * table->ncolumns * sizeof(*values) + 1);
    struct db_value *v = values;

    for (size_t i = 0; i < count; i++)
        if (rows[i]->completes == completes)
            v = put_update(v, rows[i], completes);
    if (v == values)
        return STATUS_OK;
    return db_queue_bulk(db, DB_UPDATE, table, values,
                         (size_t)(v - values) / table->ncolumns, tag, diag);
}

enum status saga_instances_update(const struct saga_instances *instances,
                                  struct db *db,
                                  const struct saga_instance *const *rows,
                                  size_t count, int64_t tag,
                                  struct arena *arena, struct diag *diag)
{
    enum status status = update(instances, db, rows, count, false, tag, arena,
                                diag);

    if (status == STATUS_OK)
        status = update(instances, db, rows, count, true, tag, arena, diag);
    return status;
}
