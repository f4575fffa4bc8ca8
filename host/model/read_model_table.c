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
    case FIELD_LIST: /* these three are no columns */
    case FIELD_SET:
    case FIELD_RECORD:
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
    c = new_columns(table, &table->insert, name, FIXED + nfields);
    c[ID] = (struct db_column){"read_model_id", DB_TEXT, DB_KEY};
    c[MESSAGE] = (struct db_column){"message_id", DB_UUID, DB_SET};
    c[STATE] = (struct db_column){"state", DB_TEXT, DB_SET};
    for (size_t i = 0; i < nfields; i++) {
        const struct declaration_field *f = &declaration->fields[i];

        c[FIXED + i] = (struct db_column){f->name, field_db_type(f->type),
                                          DB_SET};
    }

    table->lookup = table->insert;

    c = new_columns(table, &table->remove, name, 2);
    c[0] = (struct db_column){"read_model_id", DB_TEXT, DB_KEY};
    c[1] = (struct db_column){"message_id", DB_UUID, DB_GUARD};

    c = new_columns(table, &table->epoch, epochs, 3);
    c[0] = (struct db_column){"projection", DB_TEXT, DB_KEY};
    c[1] = (struct db_column){"read_model_key", DB_TEXT, DB_KEY};
    c[2] = (struct db_column){"epoch", DB_INT64, DB_SET};
    table->epochs_delete = catalog_sql(catalog, SQL_EPOCHS_DELETE);
    table->epochs_read = catalog_sql(catalog, SQL_EPOCHS_READ);
    table->epochs_stale = catalog_sql(catalog, SQL_EPOCHS_STALE);
    table->epochs_held = catalog_sql(catalog, SQL_EPOCHS_STALE_HELD);
}

void read_model_table_free(struct read_model_table *table)
{
    arena_free(&table->arena);
}

/* --- what changed ---------------------------------------------------- */

/* A value as stored, for comparison; false when it is of another kind. */
static bool take_value(struct db_rows *row, size_t column, enum db_type type,
                       struct arena *arena, struct db_value *value)
{
    enum db_type stored = db_column_type(row, column);

    *value = db_null();
    if (stored == DB_NULL)
        return true;
    switch (type) {
    case DB_INT64:
        if (stored != DB_INT64)
            return false;
        *value = db_integer(db_get_int64(row, column));
        return true;
    case DB_TEXT:
        if (stored != DB_TEXT)
            return false;
        *value = db_text_value(arena_copy(arena, db_get_text(row, column)));
        return true;
    case DB_BOOL:
        if (stored != DB_BOOL && stored != DB_INT64)
            return false;
        *value = db_boolean(db_get_bool(row, column));
        return true;
    default:
        return false; /* rare as fields; written whether they change or not */
    }
}

void read_model_table_take(const struct read_model_table *table,
                           struct db_rows *row, struct arena *arena,
                           struct db_value *fields, uint64_t *unknown)
{
    *unknown = 0;
    for (size_t i = 0; i < table->declaration->nfields; i++)
        if (!take_value(row, FIXED - 1 + i,
                        table->insert.columns[FIXED + i].type, arena,
                        &fields[i]))
            *unknown |= READ_MODEL_FIELD_BIT(i);
}

static bool same_value(const struct db_value *a, const struct db_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case DB_NULL:
        return true;
    case DB_INT64:
        return a->as.integer == b->as.integer;
    case DB_TEXT:
        return text_equal(a->as.text, b->as.text);
    case DB_BOOL:
        return a->as.boolean == b->as.boolean;
    default:
        return false;
    }
}

uint64_t read_model_table_changed(const struct read_model_table *table,
                                  const struct db_value *before,
                                  const struct db_value *after)
{
    uint64_t changed = 0;

    for (size_t i = 0; i < table->declaration->nfields; i++)
        if (!same_value(&before[i], &after[i]))
            changed |= READ_MODEL_FIELD_BIT(i);
    return changed;
}

/* --- inserts and updates --------------------------------------------- */

/* The update of one set of changed fields: key, message_id, state, those
 * fields and, last, the message_id that was read. */
struct read_model_update {
    struct read_model_update *next;
    uint64_t changed;
    struct db_table table;
};

static const struct db_table *update_of(struct read_model_table *table,
                                        uint64_t changed)
{
    size_t nfields = table->declaration->nfields;
    struct read_model_update *update = table->updates;
    struct db_column *c;
    size_t n = FIXED;

    while (update != NULL && update->changed != changed)
        update = update->next;
    if (update != NULL)
        return &update->table;
    update = arena_alloc_zero(&table->arena, sizeof(*update));
    update->changed = changed;
    update->next = table->updates;
    table->updates = update;
    c = new_columns(table, &update->table, table->insert.name,
                    FIXED + nfields + 1);
    memcpy(c, table->insert.columns, FIXED * sizeof(*c));
    for (size_t i = 0; i < nfields; i++)
        if ((changed & READ_MODEL_FIELD_BIT(i)) != 0)
            c[n++] = table->insert.columns[FIXED + i];
    c[n++] = (struct db_column){"message_id", DB_UUID, DB_GUARD};
    update->table.ncolumns = n;
    return &update->table;
}

static void fixed_values(const struct read_model_row *row, struct db_value *v)
{
    v[ID] = db_text_value(row->key);
    v[MESSAGE] = db_uuid(row->message_id);
    v[STATE] = db_text_value(row->state);
}

static void update_values(const struct read_model_row *row, size_t nfields,
                          struct db_value *v)
{
    fixed_values(row, v);
    v += FIXED;
    for (size_t i = 0; i < nfields; i++)
        if ((row->changed & READ_MODEL_FIELD_BIT(i)) != 0)
            *v++ = row->fields[i];
    *v = db_uuid(row->read_id);
}

/* Rows that changed the same fields go together; most batches have few such
 * sets. */
static enum status write_updates(struct read_model_table *table, struct db *db,
                                 const struct read_model_row *rows,
                                 size_t count, struct arena *arena,
                                 struct diag *diag)
{
    size_t nfields = table->declaration->nfields;
    bool *done = arena_alloc_zero(arena, count * sizeof(*done));
    enum status status = STATUS_OK;

    for (size_t first = 0; status == STATUS_OK && first < count; first++) {
        const struct db_table *update;
        struct db_value *values;
        size_t n = 0;

        if (done[first])
            continue;
        update = update_of(table, rows[first].changed);
        values = arena_alloc(arena, (count - first) * update->ncolumns *
                                        sizeof(*values));
        for (size_t i = first; i < count; i++) {
            if (done[i] || rows[i].changed != rows[first].changed)
                continue;
            done[i] = true;
            update_values(&rows[i], nfields, values + n++ * update->ncolumns);
        }
        status = db_queue_bulk(db, DB_UPDATE, update, values, n, 0, diag);
    }
    return status;
}

static struct db_value *insert_values(const struct read_model_table *table,
                                      const struct read_model_row *rows,
                                      size_t count, struct arena *arena)
{
    size_t nfields = table->declaration->nfields;
    size_t width = FIXED + nfields;
    struct db_value *values = arena_alloc(arena,
                                          count * width * sizeof(*values));

    for (size_t i = 0; i < count; i++) {
        struct db_value *v = values + i * width;

        fixed_values(&rows[i], v);
        if (nfields > 0)
            memcpy(v + FIXED, rows[i].fields, nfields * sizeof(*v));
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

enum status read_model_table_forget(const struct read_model_table *table,
                                    struct db *db, const struct text *keys,
                                    size_t count, struct diag *diag)
{
    const struct db_value params[] = {db_text_value(table->projection),
                                      db_texts(keys, count)};

    return db_queue(db, table->epochs_delete, params, 2, DB_ANY_ROWS, 0, diag);
}

/* Those that counted as absent and were made anew belong to this rebuild. */
static enum status write_anew(const struct read_model_table *table,
                              struct db *db, const struct read_model_row *rows,
                              size_t count, struct arena *arena,
                              struct diag *diag)
{
    struct read_model_row *anew = arena_alloc(arena, count * sizeof(*anew));
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (rows[i].made_anew)
            anew[n++] = rows[i];
    return n > 0 ? write_epochs(table, db, anew, n, arena, diag) : STATUS_OK;
}

static enum status delete_epochs(const struct read_model_table *table,
                                 struct db *db,
                                 const struct read_model_row *rows,
                                 size_t count, struct arena *arena,
                                 struct diag *diag)
{
    struct text *keys = arena_alloc(arena, count * sizeof(*keys));

    for (size_t i = 0; i < count; i++)
        keys[i] = rows[i].key;
    return read_model_table_forget(table, db, keys, count, diag);
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

enum status read_model_table_write(struct read_model_table *table,
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
        status = write_updates(table, db, rows, count, arena, diag);
        return status == STATUS_OK
                   ? write_anew(table, db, rows, count, arena, diag)
                   : status;
    case READ_MODEL_INSERT:
        break;
    }
    status = db_queue_bulk(db, DB_INSERT, &table->insert,
                           insert_values(table, rows, count, arena), count, 0,
                           diag);
    if (status == STATUS_OK)
        status = write_epochs(table, db, rows, count, arena, diag);
    return status;
}

/* --- epochs ----------------------------------------------------------- */

enum status read_model_table_epochs(const struct read_model_table *table,
                                    struct db *db, const struct text *keys,
                                    size_t count, read_model_epoch_fn fn,
                                    void *arg, struct diag *diag)
{
    const struct db_value params[] = {db_text_value(table->projection),
                                      db_texts(keys, count)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(db, table->epochs_read, params, 2, &rows,
                                  diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more)
        fn(arg, (size_t)db_get_int64(rows, 0), db_get_int64(rows, 1));
    db_rows_close(rows);
    return status;
}

enum status read_model_table_stale(const struct read_model_table *table,
                                   struct db *db,
                                   const struct applier_stale *stale,
                                   struct text after, struct text *keys,
                                   size_t *count, struct arena *arena,
                                   struct diag *diag)
{
    bool held = stale->held_by != NULL;
    const struct db_value params[] = {
        db_text_value(table->projection),
        db_integer(stale->epoch),
        db_text_value(after.data != NULL ? after : TEXT_LITERAL("")),
        db_integer((int64_t)stale->limit),
        held ? db_string(stale->held_by) : db_null(),
        held ? db_string(stale->source) : db_null()};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(
        db, held ? table->epochs_held : table->epochs_stale, params,
        held ? 6 : 4, &rows, diag);

    *count = 0;
    if (status != STATUS_OK)
        return status;
    while (*count < stale->limit &&
           (status = db_next(rows, &more, diag)) == STATUS_OK && more)
        keys[(*count)++] = arena_copy(arena, db_get_text(rows, 0));
    db_rows_close(rows);
    return status;
}
