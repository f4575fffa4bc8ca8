#include "model/read_model_table.h"

enum { ID, MESSAGE, STATE, FIXED };

static struct db_column *new_columns(struct read_model_table *table,
                                     struct db_table *out, const char *name,
                                     size_t count)
{
    struct db_column *columns = arena_alloc_zero(&table->arena,
                                                 count * sizeof(*columns));

    *out = (struct db_table){
        .name = name,
        .columns = columns,
        .ncolumns = count,
        .origin = DB_HOST,
    };
    return columns;
}

/* How a declared field's value travels; the driver stores what it can. */
static enum db_type field_db_type(enum field_type type)
{
    switch (type) {
    case FIELD_INTEGER:
        return DB_INT64;
    case FIELD_DOUBLE:
        return DB_DOUBLE;
    case FIELD_BOOLEAN:
        return DB_BOOL;
    case FIELD_TIMESTAMP:
        return DB_TIMESTAMP;
    case FIELD_UUID:
        return DB_UUID;
    case FIELD_BYTES:
        return DB_BYTES;
    case FIELD_DECIMAL:
        return DB_DECIMAL;
    case FIELD_TEXT:
    case FIELD_DATE:
    case FIELD_TIME:
    case FIELD_ENUM:
        break;
    }
    return DB_TEXT;
}

void read_model_table_init(struct read_model_table *table,
                           const struct declaration *declaration,
                           const struct names *names,
                           const struct catalog *catalog)
{
    const char *name = declaration->table;
    const char *epochs = names->table[TABLE_EPOCHS];
    size_t nfields = declaration->nfields;
    struct db_column *c;

    *table = (struct read_model_table){
        .declaration = declaration,
        .projection = text_of(declaration->name),
    };
    c = new_columns(table, &table->lookup, name, FIXED);
    c[ID] = (struct db_column){"read_model_id", DB_TEXT, DB_KEY};
    c[MESSAGE] = (struct db_column){"message_id", DB_UUID, DB_SET};
    c[STATE] = (struct db_column){"state", DB_TEXT, DB_SET};

    c = new_columns(table, &table->insert, name, FIXED + nfields);
    memcpy(c, table->lookup.columns, FIXED * sizeof(*c));
    for (size_t i = 0; i < nfields; i++) {
        const struct declaration_field *f = &declaration->fields[i];

        c[FIXED + i] = (struct db_column){f->name, field_db_type(f->type),
                                          DB_SET};
    }

    /* the same and, last, the message_id that was read */
    c = new_columns(table, &table->update, name, FIXED + nfields + 1);
    memcpy(c, table->insert.columns, (FIXED + nfields) * sizeof(*c));
    c[FIXED + nfields] = (struct db_column){"message_id", DB_UUID, DB_GUARD};

    c = new_columns(table, &table->remove, name, 2);
    c[0] = (struct db_column){"read_model_id", DB_TEXT, DB_KEY};
    c[1] = (struct db_column){"message_id", DB_UUID, DB_GUARD};

    c = new_columns(table, &table->epoch, epochs, 3);
    c[0] = (struct db_column){"projection", DB_TEXT, DB_KEY};
    c[1] = (struct db_column){"read_model_key", DB_TEXT, DB_KEY};
    c[2] = (struct db_column){"epoch", DB_INT64, DB_SET};
    table->epochs_delete = catalog_sql(catalog, SQL_EPOCHS_DELETE);
}

void read_model_table_free(struct read_model_table *table)
{
    arena_free(&table->arena);
}

static struct db_value *save_values(const struct read_model_table *table,
                                    bool update,
                                    const struct read_model_row *rows,
                                    size_t count, struct arena *arena)
{
    size_t nfields = table->declaration->nfields;
    size_t width = FIXED + nfields + (update ? 1 : 0);
    struct db_value *values = arena_alloc(arena,
                                          count * width * sizeof(*values));

    for (size_t i = 0; i < count; i++) {
        const struct read_model_row *row = &rows[i];
        struct db_value *v = values + i * width;

        v[ID] = db_text_value(row->key);
        v[MESSAGE] = db_uuid(row->message_id);
        v[STATE] = db_text_value(row->state);
        if (nfields > 0)
            memcpy(v + FIXED, row->fields, nfields * sizeof(*v));
        if (update)
            v[FIXED + nfields] = db_uuid(row->read_id);
    }
    return values;
}

static enum status write_epochs(const struct read_model_table *table,
                                struct db *db,
                                const struct read_model_row *rows, size_t count,
                                struct arena *arena, struct diag *diag)
{
    struct db_value *values = arena_alloc(arena, count * 3 * sizeof(*values));

    for (size_t i = 0; i < count; i++) {
        values[3 * i] = db_text_value(table->projection);
        values[3 * i + 1] = db_text_value(rows[i].key);
        values[3 * i + 2] = db_integer(rows[i].epoch);
    }
    return db_queue_bulk(db, DB_UPSERT, &table->epoch, values, count, 0, diag);
}

static enum status delete_epochs(const struct read_model_table *table,
                                 struct db *db,
                                 const struct read_model_row *rows,
                                 size_t count, struct arena *arena,
                                 struct diag *diag)
{
    struct text *keys = arena_alloc(arena, count * sizeof(*keys));
    struct db_value params[2];

    for (size_t i = 0; i < count; i++)
        keys[i] = rows[i].key;
    params[0] = db_text_value(table->projection);
    params[1] = db_texts(keys, count);
    return db_queue(db, table->epochs_delete, params, 2, DB_ANY_ROWS, 0, diag);
}

static enum status write_removed(const struct read_model_table *table,
                                 struct db *db,
                                 const struct read_model_row *rows,
                                 size_t count, struct arena *arena,
                                 struct diag *diag)
{
    struct db_value *values = arena_alloc(arena, count * 2 * sizeof(*values));
    enum status status;

    for (size_t i = 0; i < count; i++) {
        values[2 * i] = db_text_value(rows[i].key);
        values[2 * i + 1] = db_uuid(rows[i].read_id);
    }
    status = db_queue_bulk(db, DB_DELETE, &table->remove, values, count, 0,
                           diag);
    if (status == STATUS_OK)
        status = delete_epochs(table, db, rows, count, arena, diag);
    return status;
}

enum status read_model_table_write(const struct read_model_table *table,
                                   struct db *db, enum read_model_write what,
                                   const struct read_model_row *rows,
                                   size_t count, struct arena *arena,
                                   struct diag *diag)
{
    enum status status;

    if (count == 0)
        return STATUS_OK;
    switch (what) {
    case READ_MODEL_DELETE:
        return write_removed(table, db, rows, count, arena, diag);
    case READ_MODEL_UPDATE:
        return db_queue_bulk(db, DB_UPDATE, &table->update,
                             save_values(table, true, rows, count, arena),
                             count, 0, diag);
    case READ_MODEL_INSERT:
        break;
    }
    status = db_queue_bulk(db, DB_INSERT, &table->insert,
                           save_values(table, false, rows, count, arena), count,
                           0, diag);
    if (status == STATUS_OK)
        status = write_epochs(table, db, rows, count, arena, diag);
    return status;
}
