#include "db/sqlite.h"

#include "base/clock.h"
#include "db/driver_shape.h"

#include <stdio.h>
#include <stdlib.h>

#define DECIMAL_DIGITS_MAX 18 /* what a 64-bit integer always holds */

/*
 * Tables keep their rowid. Measured with keyed updates of 100,000 rows: without
 * it rows of 300 bytes are about 15 % faster, rows of 1,600 bytes more than
 * four times slower, because they no longer fit into the index's pages. How
 * large a state gets is the script's business.
 */

/* --- from a shape to DDL ------------------------------------------------- */

static const char *type_of(enum db_kind kind)
{
    switch (kind) {
    case DB_KIND_INTEGER:
    case DB_KIND_BOOLEAN:
    case DB_KIND_DECIMAL:
        return "INTEGER";
    case DB_KIND_DOUBLE:
        return "REAL";
    case DB_KIND_BYTES:
        return "BLOB";
    case DB_KIND_KEY:
    case DB_KIND_TEXT:
    case DB_KIND_DOCUMENT:
    case DB_KIND_DATE:
    case DB_KIND_TIME:
    case DB_KIND_TIMESTAMP:
    case DB_KIND_UUID:
    case DB_KIND_OTHER:
        break;
    }
    return "TEXT";
}

/*
 * SQLite has five types for all kinds, so a column's kind would be lost. A
 * check keeps it: it refuses what the kind cannot be, and its name tells the
 * kind when the table is read back ("is_decimal_8_2").
 */
static void print_kind(const struct db_shape_column *column, struct buffer *out)
{
    const char *name = column->name;
    long long bound = 1;

    switch (column->kind) {
    case DB_KIND_BOOLEAN:
        buffer_printf(out, " CONSTRAINT is_boolean CHECK (\"%s\" IN (0, 1))",
                      name);
        return;
    case DB_KIND_DECIMAL:
        for (int i = 0; i < column->precision; i++)
            bound *= 10;
        buffer_printf(out,
                      " CONSTRAINT is_decimal_%d_%d CHECK (abs(\"%s\") < %lld)",
                      column->precision, column->scale, name, bound);
        return;
    case DB_KIND_DATE:
        buffer_printf(out, " CONSTRAINT is_date CHECK (length(\"%s\") = 10)",
                      name);
        return;
    case DB_KIND_TIME:
        buffer_printf(out,
                      " CONSTRAINT is_time CHECK (length(\"%s\") BETWEEN 8 AND "
                      "15)",
                      name);
        return;
    case DB_KIND_TIMESTAMP:
        buffer_printf(out,
                      " CONSTRAINT is_timestamp CHECK (length(\"%s\") = %d)",
                      name, CLOCK_TEXT_SIZE - 1);
        return;
    case DB_KIND_UUID:
        buffer_printf(out, " CONSTRAINT is_uuid CHECK (length(\"%s\") = %d)",
                      name, UUID_TEXT_LEN);
        return;
    default:
        return;
    }
}

void sqlite_shape_name(const char *name, struct buffer *out)
{
    buffer_printf(out, "\"%s\"", name);
}

void sqlite_shape_print(const struct db_shape *shape, struct buffer *out)
{
    buffer_printf(out, "CREATE TABLE \"%s\" (\n", shape->name);
    for (size_t i = 0; i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        buffer_printf(out, "%s    \"%s\" %s%s", i > 0 ? ",\n" : "",
                      column->name, type_of(column->kind),
                      column->not_null || column->primary ? " NOT NULL" : "");
        print_kind(column, out);
    }
    driver_shape_print_key(shape, '"', out);
    buffer_append_string(out, "\n) STRICT;\n");
    for (size_t i = 0; i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        if (column->primary || !(column->indexed || column->unique))
            continue;
        buffer_printf(out, "CREATE %sINDEX \"idx_%s_%s\" ON \"%s\" (\"%s\");\n",
                      column->unique ? "UNIQUE " : "", shape->name,
                      column->name, shape->name, column->name);
    }
}

static enum status check(const struct db_shape *shape, struct diag *diag)
{
    enum status status = driver_shape_check_names(shape, diag);

    for (size_t i = 0; status == STATUS_OK && i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        if (column->kind == DB_KIND_DECIMAL &&
            column->precision > DECIMAL_DIGITS_MAX)
            status = diag_set(
                diag, STATUS_PERMANENT,
                "column %s of table %s asks for a decimal of %d digits; this "
                "database holds at most %d",
                column->name, shape->name, column->precision,
                DECIMAL_DIGITS_MAX);
    }
    return status;
}

enum status sqlite_shape_create(struct db_session *session,
                                const struct db_shape *shape, struct diag *diag)
{
    enum status status = check(shape, diag);

    if (status != STATUS_OK)
        return status;
    return driver_shape_create(session, shape, sqlite_shape_print,
                               sqlite_statement_script, diag);
}

/* --- and back ------------------------------------------------------------ */

/* STRICT tables know five names; others are judged by SQLite's own rule. */
static enum db_kind kind_of(const char *declared)
{
    if (strcasestr(declared, "INT") != NULL)
        return DB_KIND_INTEGER;
    if (strcasestr(declared, "CHAR") != NULL ||
        strcasestr(declared, "CLOB") != NULL ||
        strcasestr(declared, "TEXT") != NULL)
        return DB_KIND_DOCUMENT;
    if (strcasestr(declared, "BLOB") != NULL)
        return DB_KIND_BYTES;
    if (strcasestr(declared, "REAL") != NULL ||
        strcasestr(declared, "FLOA") != NULL ||
        strcasestr(declared, "DOUB") != NULL)
        return DB_KIND_DOUBLE;
    return DB_KIND_OTHER;
}

/* Another collation would merge keys that differ: `A-1` and `a-1`. */
static void read_collation(struct db_session *session, const char *table,
                           struct arena *arena, struct db_shape_column *column)
{
    const char *collation = NULL;
    struct buffer text = BUFFER_EMPTY;

    if (sqlite3_table_column_metadata(session->handle, "main", table,
                                      column->name, NULL, &collation, NULL,
                                      NULL, NULL) != SQLITE_OK ||
        collation == NULL || sqlite3_stricmp(collation, "BINARY") == 0 ||
        column->kind != DB_KIND_DOCUMENT)
        return;
    buffer_printf(&text, "%s COLLATE %s", column->declared, collation);
    column->kind = DB_KIND_OTHER;
    column->declared = arena_string(arena, buffer_text(&text));
    buffer_free(&text);
}

/* --- the kind that a check keeps ------------------------------------------ */

static const struct {
    const char *name;
    enum db_kind kind;
} kept_kinds[] = {
    {"boolean", DB_KIND_BOOLEAN}, {"decimal", DB_KIND_DECIMAL},
    {"date", DB_KIND_DATE},       {"timestamp", DB_KIND_TIMESTAMP},
    {"time", DB_KIND_TIME},       {"uuid", DB_KIND_UUID},
};

/* "is_decimal_8_2" of the column's definition; it stays as it is without. */
static void read_kind(const char *definition, struct arena *arena,
                      struct db_shape_column *column)
{
    char declared[64];
    const char *end;

    for (size_t i = 0; i < sizeof(kept_kinds) / sizeof(kept_kinds[0]); i++) {
        size_t len = strlen(kept_kinds[i].name);

        if (strncmp(definition, kept_kinds[i].name, len) != 0)
            continue;
        column->kind = kept_kinds[i].kind;
        end = definition + len;
        if (column->kind == DB_KIND_DECIMAL && *end == '_') {
            column->precision = (int)strtol(end + 1, (char **)&end, 10);
            column->scale = *end == '_' ? (int)strtol(end + 1, NULL, 10) : 0;
            snprintf(declared, sizeof(declared), "%s for a decimal(%d, %d)",
                     column->declared, column->precision, column->scale);
        } else {
            snprintf(declared, sizeof(declared), "%s for a %s",
                     column->declared, kept_kinds[i].name);
        }
        column->declared = arena_string(arena, text_of(declared));
        return;
    }
}

/* The definitions are lines as sqlite_shape_print wrote them. */
static void read_kinds(const char *sql, struct arena *arena,
                       struct db_shape_column *columns, size_t count)
{
    static const char mark[] = " CONSTRAINT is_";
    struct buffer start = BUFFER_EMPTY;

    for (size_t i = 0; i < count; i++) {
        const char *line, *found, *end;

        buffer_clear(&start);
        buffer_printf(&start, "\n    \"%s\" ", columns[i].name);
        line = strstr(sql, start.data);
        if (line == NULL)
            continue;
        end = strchr(line + 1, '\n');
        found = strstr(line, mark);
        if (found != NULL && (end == NULL || found < end))
            read_kind(found + strlen(mark), arena, &columns[i]);
    }
    buffer_free(&start);
}

static void take_column(struct db_rows *rows, struct arena *arena,
                        struct db_shape_column *column)
{
    column->name = arena_string(arena, sqlite_rows_get_text(rows, 0));
    column->declared = arena_string(arena, sqlite_rows_get_text(rows, 1));
    column->primary = sqlite_rows_get_int64(rows, 3) > 0;
    column->not_null = column->primary || sqlite_rows_get_bool(rows, 2);
    column->kind = kind_of(column->declared);
}

#define COLUMNS                                                                \
    "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1)"           \
    " WHERE hidden <> 1 ORDER BY cid"

/* A partial index guards only some rows and is left out. The primary key is
 * told by the column itself. */
#define INDEXES                                                                \
    "SELECT min(c.name), l.\"unique\" FROM pragma_index_list(?1) AS l,"        \
    " pragma_index_xinfo(l.name) AS c"                                         \
    " WHERE l.partial = 0 AND l.origin <> 'pk' AND c.key = 1"                  \
    " GROUP BY l.name HAVING count(*) = 1 AND min(c.name) IS NOT NULL"         \
    " AND (l.\"unique\" = 0 OR min(c.coll) = 'BINARY')"

static enum status read_definition(const struct driver_shape *table,
                                   struct diag *diag)
{
    const struct db_sql sql = db_sql_make(
        TEXT_LITERAL("SELECT sql FROM sqlite_schema WHERE type = 'table'"
                     " AND name = ?1 COLLATE NOCASE AND sql IS NOT NULL"),
        DB_HOST);
    const struct db_value name = db_text_value(table->table);
    struct db_rows *rows;
    bool more = false;
    enum status status = sqlite_rows_query(table->session, &sql, &name, 1,
                                           &rows, diag);

    if (status != STATUS_OK)
        return status;
    status = sqlite_rows_next(rows, &more, diag);
    if (status == STATUS_OK && more)
        read_kinds(arena_string(table->arena, sqlite_rows_get_text(rows, 0)),
                   table->arena, table->columns, table->count);
    sqlite_rows_close(rows);
    return status;
}

enum status sqlite_shape_describe(struct db_session *session, const char *name,
                                  struct arena *arena, struct db_shape *shape,
                                  bool *exists, struct diag *diag)
{
    struct driver_shape table = {
        .session = session,
        .query = sqlite_rows_query,
        .table = text_of(name),
        .arena = arena,
    };
    enum status status;

    *exists = false;
    *shape = (struct db_shape){.name = arena_string(arena, text_of(name))};
    status = driver_shape_columns(&table, COLUMNS, take_column, diag);
    if (status != STATUS_OK || table.count == 0)
        return status;
    status = driver_shape_indexes(&table, INDEXES, diag);
    if (status == STATUS_OK)
        status = read_definition(&table, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < table.count; i++)
        read_collation(session, name, arena, &table.columns[i]);
    shape->columns = table.columns;
    shape->ncolumns = table.count;
    *exists = true;
    return STATUS_OK;
}

/* What a column of a kind should be, for the message. */
static const char *should_be(const struct db_shape_column *wanted)
{
    switch (wanted->kind) {
    case DB_KIND_BOOLEAN:
        return "INTEGER for a boolean";
    case DB_KIND_DECIMAL:
        return wanted->precision > DECIMAL_DIGITS_MAX
                   ? "a decimal of at most 18 digits"
                   : "INTEGER for a decimal of the declared digits and scale";
    case DB_KIND_DATE:
        return "TEXT for a date";
    case DB_KIND_TIME:
        return "TEXT for a time";
    case DB_KIND_TIMESTAMP:
        return "TEXT for a timestamp";
    default:
        return type_of(wanted->kind);
    }
}

static bool is_kept(enum db_kind kind)
{
    for (size_t i = 0; i < sizeof(kept_kinds) / sizeof(kept_kinds[0]); i++)
        if (kept_kinds[i].kind == kind)
            return true;
    return false;
}

/* A column whose kind is known must be of that kind: the same bytes mean
 * something else in another. One that somebody made by hand is judged by how
 * it stores. */
const char *sqlite_shape_fits(const struct db_shape_column *wanted,
                              const struct db_shape_column *actual)
{
    bool fits;

    if (wanted->kind == DB_KIND_DECIMAL &&
        wanted->precision > DECIMAL_DIGITS_MAX)
        return should_be(wanted);
    if (!is_kept(actual->kind))
        fits = kind_of(type_of(wanted->kind)) == actual->kind;
    else if (wanted->kind == DB_KIND_DECIMAL)
        fits = actual->kind == DB_KIND_DECIMAL &&
               actual->scale == wanted->scale &&
               actual->precision >= wanted->precision;
    else
        fits = actual->kind == wanted->kind;
    return fits ? NULL : should_be(wanted);
}
