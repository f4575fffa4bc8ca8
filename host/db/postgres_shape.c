#include "db/postgres.h"

#include "db/driver_shape.h"

#include <stdlib.h>

#define TEXT_LENGTH 255

/* --- from a shape to DDL ------------------------------------------------- */

static const char *type_of(enum db_kind kind)
{
    switch (kind) {
    case DB_KIND_KEY:
    case DB_KIND_TEXT:
        return "VARCHAR(255) COLLATE \"C\"";
    case DB_KIND_INTEGER:
        return "BIGINT";
    case DB_KIND_DOUBLE:
        return "DOUBLE PRECISION";
    case DB_KIND_DECIMAL:
        return "NUMERIC";
    case DB_KIND_BOOLEAN:
        return "BOOLEAN";
    case DB_KIND_DATE:
        return "DATE";
    case DB_KIND_TIME:
        return "TIME(6)";
    case DB_KIND_TIMESTAMP:
        return "TIMESTAMP(6)";
    case DB_KIND_UUID:
        return "UUID";
    case DB_KIND_BYTES:
        return "BYTEA";
    case DB_KIND_DOCUMENT:
    case DB_KIND_OTHER:
        break;
    }
    return "TEXT";
}

/* As postgres_bulk_name, of a name that was checked; printing has no way to
 * fail, and what is wrong is told when the table is made. */
static void print_name(struct buffer *out, const char *name)
{
    if (postgres_bulk_name(out, name, NULL) != STATUS_OK)
        buffer_printf(out, "\"%s\"", name);
}

static void print_index(struct buffer *out, const struct db_shape *shape,
                        const struct db_shape_column *column)
{
    struct buffer name = BUFFER_EMPTY;

    buffer_printf(&name, "idx_%s_%s", shape->name, column->name);
    buffer_printf(out, "CREATE %sINDEX IF NOT EXISTS ",
                  column->unique ? "UNIQUE " : "");
    print_name(out, name.data);
    buffer_append_string(out, " ON ");
    print_name(out, shape->name);
    buffer_append_string(out, " (");
    print_name(out, column->name);
    buffer_append_string(out, ");\n");
    buffer_free(&name);
}

static void print_primary_key(const struct db_shape *shape, struct buffer *out)
{
    const char *between = ",\n    PRIMARY KEY (";
    bool any = false;

    for (size_t i = 0; i < shape->ncolumns; i++) {
        if (!shape->columns[i].primary)
            continue;
        buffer_append_string(out, between);
        print_name(out, shape->columns[i].name);
        between = ", ";
        any = true;
    }
    if (any)
        buffer_append_char(out, ')');
}

void postgres_shape_name(const char *name, struct buffer *out)
{
    print_name(out, name);
}

void postgres_shape_print(const struct db_shape *shape, struct buffer *out)
{
    buffer_append_string(out, "CREATE TABLE IF NOT EXISTS ");
    print_name(out, shape->name);
    buffer_append_string(out, " (\n");
    for (size_t i = 0; i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        buffer_append_string(out, i > 0 ? ",\n    " : "    ");
        print_name(out, column->name);
        buffer_printf(out, " %s", type_of(column->kind));
        if (column->kind == DB_KIND_DECIMAL)
            buffer_printf(out, "(%d,%d)", column->precision, column->scale);
        if (column->not_null || column->primary)
            buffer_append_string(out, " NOT NULL");
    }
    print_primary_key(shape, out);
    buffer_append_string(out, "\n);\n");
    for (size_t i = 0; i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        if (!column->primary && (column->indexed || column->unique))
            print_index(out, shape, column);
    }
}

/* Another host may make it at the same moment: the script's lock puts the two
 * in a row, and the second finds it there. */
enum status postgres_shape_create(struct db_session *session,
                                  const struct db_shape *shape,
                                  struct diag *diag)
{
    enum status status = driver_shape_check_names(shape, diag);

    if (status != STATUS_OK)
        return status;
    return driver_shape_create(session, shape, postgres_shape_print,
                               postgres_statement_script, diag);
}

/* --- and back ------------------------------------------------------------ */

/*
 * A character column of any length or of a certain one is DB_KIND_TEXT with
 * that length in `precision`, 0 for any. JSON keeps its bytes, so it is a
 * document; it cannot be compared, so it is no text.
 */
static void read_type(unsigned type, int modifier,
                      struct db_shape_column *column)
{
    switch (type) {
    case PG_VARCHAR:
        column->kind = DB_KIND_TEXT;
        column->precision = modifier < 0 ? 0 : modifier - 4;
        break;
    case PG_TEXT:
        column->kind = DB_KIND_TEXT;
        break;
    case PG_JSON:
        column->kind = DB_KIND_DOCUMENT;
        break;
    case PG_INT8:
        column->kind = DB_KIND_INTEGER;
        break;
    case PG_FLOAT8:
        column->kind = DB_KIND_DOUBLE;
        break;
    case PG_NUMERIC:
        column->kind = DB_KIND_DECIMAL;
        if (modifier >= 4) {
            column->precision = (modifier - 4) >> 16 & 0xffff;
            column->scale = (modifier - 4) & 0x7ff;
        }
        break;
    case PG_BOOL:
        column->kind = DB_KIND_BOOLEAN;
        break;
    case PG_DATE:
        column->kind = DB_KIND_DATE;
        break;
    case PG_TIME:
        column->kind = modifier < 0 || modifier == 6 ? DB_KIND_TIME
                                                     : DB_KIND_OTHER;
        break;
    case PG_TIMESTAMP:
    case PG_TIMESTAMPTZ:
        column->kind = modifier < 0 || modifier == 6 ? DB_KIND_TIMESTAMP
                                                     : DB_KIND_OTHER;
        break;
    case PG_UUID:
        column->kind = DB_KIND_UUID;
        break;
    case PG_BYTEA:
        column->kind = DB_KIND_BYTES;
        break;
    default:
        column->kind = DB_KIND_OTHER;
        break;
    }
}

/* Columns: name, type id, modifier, type as shown, not null, part of the
 * primary key, has an index of its own, has a unique one, is exact. An index
 * counts when it is whole, of this column alone, and (unique) lets several
 * NULLs in; the jsonb is there because older servers lack the column. */
#define DESCRIBE                                                               \
    "SELECT a.attname::text, a.atttypid::bigint, a.atttypmod::bigint,"         \
    " format_type(a.atttypid, a.atttypmod) ||"                                 \
    " CASE WHEN coalesce(co.collisdeterministic, true) THEN ''"                \
    " ELSE ' COLLATE ' || quote_ident(co.collname) END,"                       \
    " a.attnotnull,"                                                           \
    " coalesce((SELECT a.attnum = ANY (p.conkey)"                              \
    " FROM pg_catalog.pg_constraint AS p"                                      \
    " WHERE p.conrelid = c.oid AND p.contype = 'p'), false),"                  \
    " coalesce(i.indexed, false), coalesce(i.is_unique, false),"               \
    " coalesce(co.collisdeterministic, true)"                                  \
    " FROM pg_catalog.pg_class AS c"                                           \
    " JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid"                 \
    " AND a.attnum > 0 AND NOT a.attisdropped"                                 \
    " LEFT JOIN pg_catalog.pg_collation AS co ON co.oid = a.attcollation"      \
    " LEFT JOIN LATERAL (SELECT true AS indexed, bool_or(x.indisunique AND"    \
    " coalesce(to_jsonb(x)->>'indnullsnotdistinct', 'false') <> 'true')"       \
    " AS is_unique FROM pg_catalog.pg_index AS x"                              \
    " WHERE x.indrelid = c.oid AND NOT x.indisprimary AND x.indisvalid"        \
    " AND x.indpred IS NULL AND x.indexprs IS NULL"                            \
    " AND x.indnatts = 1 AND x.indkey[0] = a.attnum"                           \
    " HAVING count(*) > 0) AS i ON true"                                       \
    " WHERE c.relnamespace = current_schema()::regnamespace"                   \
    " AND c.relname = ?1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"     \
    " ORDER BY a.attnum"

static void take_column(struct db_rows *rows, struct arena *arena,
                        struct db_shape_column *column)
{
    column->name = arena_string(arena, postgres_rows_get_text(rows, 0));
    column->declared = arena_string(arena, postgres_rows_get_text(rows, 3));
    column->not_null = postgres_rows_get_bool(rows, 4);
    column->primary = postgres_rows_get_bool(rows, 5);
    column->indexed = postgres_rows_get_bool(rows, 6);
    column->unique = postgres_rows_get_bool(rows, 7);
    read_type((unsigned)postgres_rows_get_int64(rows, 1),
              (int)postgres_rows_get_int64(rows, 2), column);
    /* such a collation would merge keys that differ: `A-1` and `a-1` */
    if (!postgres_rows_get_bool(rows, 8))
        column->kind = DB_KIND_OTHER;
}

enum status postgres_shape_describe(struct db_session *session,
                                    const char *name, struct arena *arena,
                                    struct db_shape *shape, bool *exists,
                                    struct diag *diag)
{
    struct buffer folded = BUFFER_EMPTY;
    struct driver_shape table = {
        .session = session,
        .query = postgres_rows_query,
        .arena = arena,
    };
    enum status status;

    *exists = false;
    *shape = (struct db_shape){.name = arena_string(arena, text_of(name))};
    status = postgres_bulk_name(&folded, name, diag);
    if (status == STATUS_OK) {
        table.table = (struct text){folded.data + 1, folded.len - 2};
        status = driver_shape_columns(&table, DESCRIBE, take_column, diag);
    }
    buffer_free(&folded);
    if (status != STATUS_OK || table.count == 0)
        return status;
    shape->columns = table.columns;
    shape->ncolumns = table.count;
    *exists = true;
    return STATUS_OK;
}

static bool fits(const struct db_shape_column *wanted,
                 const struct db_shape_column *actual)
{
    switch (wanted->kind) {
    case DB_KIND_KEY:
    case DB_KIND_TEXT:
        return actual->kind == DB_KIND_TEXT &&
               (actual->precision == 0 || actual->precision >= TEXT_LENGTH);
    case DB_KIND_DOCUMENT:
        return actual->kind == DB_KIND_DOCUMENT ||
               (actual->kind == DB_KIND_TEXT && actual->precision == 0);
    case DB_KIND_DECIMAL:
        return actual->kind == DB_KIND_DECIMAL &&
               (actual->precision == 0 ||
                (actual->scale >= wanted->scale &&
                 actual->precision - actual->scale >=
                     wanted->precision - wanted->scale));
    default:
        return actual->kind == wanted->kind;
    }
}

const char *postgres_shape_fits(const struct db_shape_column *wanted,
                                const struct db_shape_column *actual)
{
    return fits(wanted, actual) ? NULL : type_of(wanted->kind);
}
