#include "model/snapshot.h"

#include "base/memory.h"

#include <string.h>

enum { COLUMN_COUNT = 7 };

static const struct db_column COLUMNS[COLUMN_COUNT] = {
    {"id", DB_UUID, DB_KEY},
    {"aggregate_type", DB_TEXT, DB_SET},
    {"aggregate_id", DB_TEXT, DB_SET},
    {"sequence_no", DB_INT64, DB_SET},
    {"snapshot_version", DB_INT64, DB_SET},
    {"payload", DB_TEXT, DB_SET},
    {"created_at", DB_TIMESTAMP, DB_SET},
};

struct snapshot_table {
    const char *owner; /* aggregate type; NULL: all that have none of their own
                        */
    struct db_table rows;
    struct buffer read_text, forget_text;
    struct db_sql read, forget;
};

struct snapshots {
    struct snapshot_table *tables; /* [0] is the shared one */
    size_t count;
};

static enum status fill(const char *dialect, enum sql_statement statement,
                        const struct catalog_name *names, struct buffer *text,
                        struct db_sql *sql, struct diag *diag)
{
    enum status status = catalog_fill(catalog_raw(dialect, statement), names,
                                      text, diag);

    if (status == STATUS_OK)
        *sql = db_sql_make(buffer_text(text), DB_HOST);
    return status;
}

static enum status open_table(const char *dialect, const struct names *names,
                              const char *owner, const char *table_name,
                              struct snapshots *snapshots, struct diag *diag)
{
    struct snapshot_table *table = &snapshots->tables[snapshots->count++];
    struct catalog_name names_of[TABLE_COUNT + 1];
    enum status status;

    memcpy(names_of, names->fill, sizeof(names_of));
    for (size_t i = 0; names_of[i].placeholder != NULL; i++)
        if (strcmp(names_of[i].placeholder,
                   names_placeholder(TABLE_SNAPSHOTS)) == 0)
            names_of[i].value = table_name;
    table->owner = owner;
    table->rows = (struct db_table){
        .name = table_name,
        .columns = COLUMNS,
        .ncolumns = COLUMN_COUNT,
        .origin = DB_HOST,
    };
    status = fill(dialect, SQL_SNAPSHOT_READ, names_of, &table->read_text,
                  &table->read, diag);
    if (status == STATUS_OK)
        status = fill(dialect, SQL_SNAPSHOT_FORGET, names_of,
                      &table->forget_text, &table->forget, diag);
    return status;
}

enum status snapshots_open(const char *dialect, const struct names *names,
                           struct snapshots **snapshots, struct diag *diag)
{
    struct snapshots *opened = mem_alloc(sizeof(*opened));
    enum status status;

    opened->tables = mem_alloc((names->naggregates + 1) *
                               sizeof(*opened->tables));
    status = open_table(dialect, names, NULL, names->table[TABLE_SNAPSHOTS],
                        opened, diag);
    for (size_t i = 0; status == STATUS_OK && i < names->naggregates; i++) {
        const struct aggregate_tables *own = &names->aggregates[i];

        if (own->snapshots[0] != '\0')
            status = open_table(dialect, names, own->aggregate_type,
                                own->snapshots, opened, diag);
    }
    if (status != STATUS_OK) {
        snapshots_close(opened);
        return status;
    }
    *snapshots = opened;
    return STATUS_OK;
}

void snapshots_close(struct snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    for (size_t i = 0; i < snapshots->count; i++) {
        buffer_free(&snapshots->tables[i].read_text);
        buffer_free(&snapshots->tables[i].forget_text);
    }
    mem_free(snapshots->tables);
    mem_free(snapshots);
}

static const struct snapshot_table *table_of(const struct snapshots *snapshots,
                                             struct text aggregate_type)
{
    for (size_t i = 1; i < snapshots->count; i++)
        if (text_equal(text_of(snapshots->tables[i].owner), aggregate_type))
            return &snapshots->tables[i];
    return &snapshots->tables[0];
}

struct reading {
    struct arena *arena;
    struct snapshot *snapshot;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct reading *reading = arg;

    (void)diag;
    *reading->snapshot = (struct snapshot){
        .found = true,
        .sequence = db_get_int64(row, 0),
        .state = arena_copy(reading->arena, db_get_text(row, 1)),
    };
    return STATUS_OK;
}

enum status snapshot_read(struct snapshots *snapshots, struct db *db,
                          const struct snapshot_of *of, struct arena *arena,
                          struct snapshot *snapshot, struct diag *diag)
{
    const struct db_value params[] = {
        db_text_value(of->aggregate_type),
        db_text_value(of->aggregate_id),
        db_integer(of->version),
    };
    struct reading reading = {arena, snapshot};

    *snapshot = (struct snapshot){.found = false};
    return db_rows_each(db, &table_of(snapshots, of->aggregate_type)->read,
                        params, 3, take_row, &reading, diag);
}

enum status snapshot_write(struct snapshots *snapshots, struct db *db,
                           const struct snapshot_of *of,
                           const struct snapshot *snapshot, struct uuid id,
                           int64_t now_us, struct arena *arena,
                           struct diag *diag)
{
    const struct snapshot_table *table = table_of(snapshots,
                                                  of->aggregate_type);
    const struct db_value params[] = {
        db_text_value(of->aggregate_type),
        db_text_value(of->aggregate_id),
        db_integer(of->version),
    };
    struct db_value *row = arena_alloc(arena, COLUMN_COUNT * sizeof(*row));
    enum status status;

    row[0] = db_uuid(id);
    row[1] = params[0];
    row[2] = params[1];
    row[3] = db_integer(snapshot->sequence);
    row[4] = params[2];
    row[5] = db_text_value(snapshot->state);
    row[6] = db_timestamp(now_us);
    status = db_queue(db, &table->forget, params, 3, DB_ANY_ROWS, 0, diag);
    if (status != STATUS_OK)
        return status;
    return db_queue_bulk(db, DB_INSERT, &table->rows, row, 1, 0, diag);
}
