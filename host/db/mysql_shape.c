#include "db/mysql_session.h"

#include "db/driver_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define TEXT_CHARS     255
#define FRACTION       6  /* digits of a second */
#define DECIMAL_DIGITS 65 /* what the server's DECIMAL holds */
#define DECIMAL_SCALE  38
#define PREFIX_CHARS   191 /* of a long text in a plain index */

#define EXACT "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"

/* --- from a shape to DDL --------------------------------------------------
 * Names in backquotes, which every mode takes: a person may run it, too. */

static void print_type(const struct db_shape_column *column, struct buffer *out)
{
    switch (column->kind) {
    case DB_KIND_KEY:
    case DB_KIND_TEXT:
        buffer_append_string(out, "VARCHAR(255) " EXACT);
        break;
    case DB_KIND_DOCUMENT:
    case DB_KIND_OTHER:
        buffer_append_string(out, "LONGTEXT " EXACT);
        break;
    case DB_KIND_INTEGER:
        buffer_append_string(out, "BIGINT");
        break;
    case DB_KIND_DOUBLE:
        buffer_append_string(out, "DOUBLE");
        break;
    case DB_KIND_DECIMAL:
        buffer_printf(out, "DECIMAL(%d,%d)", column->precision, column->scale);
        break;
    case DB_KIND_BOOLEAN:
        buffer_append_string(out, "TINYINT(1)");
        break;
    case DB_KIND_DATE:
        buffer_append_string(out, "DATE");
        break;
    case DB_KIND_TIME:
        buffer_append_string(out, "TIME(6)");
        break;
    case DB_KIND_TIMESTAMP:
        buffer_append_string(out, "DATETIME(6)");
        break;
    case DB_KIND_UUID:
        buffer_append_string(out, "CHAR(36) CHARACTER SET ascii"
                                  " COLLATE ascii_bin");
        break;
    case DB_KIND_BYTES:
        buffer_append_string(out, "LONGBLOB");
        break;
    }
}

static bool is_long(const struct db_shape_column *column)
{
    return column->kind == DB_KIND_DOCUMENT || column->kind == DB_KIND_BYTES ||
           column->kind == DB_KIND_OTHER;
}

static void print_index(const struct db_shape *shape,
                        const struct db_shape_column *column,
                        struct buffer *out)
{
    buffer_printf(out, ",\n    %sINDEX `idx_%s_%s` (`%s`",
                  column->unique ? "UNIQUE " : "", shape->name, column->name,
                  column->name);
    if (is_long(column) && !column->unique)
        buffer_printf(out, "(%d)", PREFIX_CHARS);
    buffer_append_char(out, ')');
}

/* The indexes belong to the statement, because each statement of DDL commits:
 * there is no table without them. */
void mysql_shape_name(const char *name, struct buffer *out)
{
    buffer_printf(out, "`%s`", name);
}

void mysql_shape_print(const struct db_shape *shape, struct buffer *out)
{
    buffer_printf(out, "CREATE TABLE `%s` (\n", shape->name);
    for (size_t i = 0; i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        buffer_printf(out, "%s    `%s` ", i > 0 ? ",\n" : "", column->name);
        print_type(column, out);
        if (column->not_null || column->primary)
            buffer_append_string(out, " NOT NULL");
    }
    driver_shape_print_key(shape, '`', out);
    for (size_t i = 0; i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        if (!column->primary && (column->indexed || column->unique))
            print_index(shape, column, out);
    }
    buffer_append_string(out, "\n) DEFAULT " EXACT ";\n");
}

static enum status check(const struct db_shape *shape, struct diag *diag)
{
    enum status status = driver_shape_check_names(shape, diag);

    for (size_t i = 0; status == STATUS_OK && i < shape->ncolumns; i++) {
        const struct db_shape_column *column = &shape->columns[i];

        if (column->kind == DB_KIND_DECIMAL &&
            (column->precision > DECIMAL_DIGITS ||
             column->scale > DECIMAL_SCALE))
            status = diag_set(
                diag, STATUS_PERMANENT,
                "column %s of table %s asks for a decimal of %d digits, %d of "
                "them behind the point; this database holds at most %d and %d",
                column->name, shape->name, column->precision, column->scale,
                DECIMAL_DIGITS, DECIMAL_SCALE);
    }
    return status;
}

enum status mysql_shape_create(struct db_session *session,
                               const struct db_shape *shape, struct diag *diag)
{
    enum status status = check(shape, diag);

    if (status != STATUS_OK)
        return status;
    return driver_shape_create(session, shape, mysql_shape_print,
                               mysql_statement_script, diag);
}

/* --- and back ------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Of a column with text: exact when no two different texts are equal. */
static enum db_kind text_kind(int64_t chars, const char *collation)
{
    if (!ends_with(collation, "_bin") && strcmp(collation, "binary") != 0)
        return DB_KIND_OTHER;
    if (chars > TEXT_CHARS)
        return DB_KIND_DOCUMENT;
    return ends_with(collation, "nopad_bin") ? DB_KIND_KEY : DB_KIND_TEXT;
}

static bool is_uuid(const char *type, const char *collation)
{
    return strcmp(type, "uuid") == 0 || ((strcmp(type, "char(36)") == 0 ||
                                          strcmp(type, "varchar(36)") == 0) &&
                                         ends_with(collation, "_bin"));
}

enum {
    COLUMN_NAME,
    COLUMN_TYPE, /* with lengths: "decimal(10,2)" */
    COLUMN_DATA_TYPE,
    COLUMN_CHARS,
    COLUMN_PRECISION,
    COLUMN_SCALE,
    COLUMN_FRACTION,
    COLUMN_COLLATION,
    COLUMN_NULLABLE,
    COLUMN_KEY,
};

static int int_of(struct db_rows *rows, size_t column)
{
    if (mysql_value_type(rows, column) == DB_NULL)
        return 0;
    return (int)mysql_value_int64(rows, column);
}

static enum db_kind kind_of(struct db_rows *rows, const char *type,
                            const char *data_type, const char *collation)
{
    static const struct {
        const char *name;
        enum db_kind kind;
    } plain[] = {
        {"bigint", DB_KIND_INTEGER},  {"double", DB_KIND_DOUBLE},
        {"decimal", DB_KIND_DECIMAL}, {"tinyint", DB_KIND_BOOLEAN},
        {"bit", DB_KIND_BOOLEAN},     {"date", DB_KIND_DATE},
        {"longblob", DB_KIND_BYTES},
    };

    if (is_uuid(type, collation))
        return DB_KIND_UUID;
    if (strcmp(data_type, "datetime") == 0)
        return int_of(rows, COLUMN_FRACTION) == FRACTION ? DB_KIND_TIMESTAMP
                                                         : DB_KIND_OTHER;
    if (strcmp(data_type, "time") == 0)
        return int_of(rows, COLUMN_FRACTION) == FRACTION ? DB_KIND_TIME
                                                         : DB_KIND_OTHER;
    if (strstr(type, "unsigned") != NULL)
        return DB_KIND_OTHER;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (strcmp(data_type, plain[i].name) == 0)
            return plain[i].kind;
    }
    if (collation[0] != '\0')
        return text_kind(mysql_value_int64(rows, COLUMN_CHARS), collation);
    return DB_KIND_OTHER;
}

static const char *copy(struct arena *arena, struct db_rows *rows,
                        size_t column)
{
    struct text text = mysql_value_text(rows, column);

    return arena_string(arena, text.data != NULL ? text : TEXT_LITERAL(""));
}

static void take_column(struct db_rows *rows, struct arena *arena,
                        struct db_shape_column *column)
{
    const char *type = copy(arena, rows, COLUMN_TYPE);
    const char *data_type = copy(arena, rows, COLUMN_DATA_TYPE);
    const char *collation = copy(arena, rows, COLUMN_COLLATION);
    struct buffer declared = BUFFER_EMPTY;

    column->name = copy(arena, rows, COLUMN_NAME);
    column->kind = kind_of(rows, type, data_type, collation);
    column->not_null = strcmp(copy(arena, rows, COLUMN_NULLABLE), "NO") == 0;
    column->primary = strcmp(copy(arena, rows, COLUMN_KEY), "PRI") == 0;
    if (column->kind == DB_KIND_DECIMAL) {
        column->precision = int_of(rows, COLUMN_PRECISION);
        column->scale = int_of(rows, COLUMN_SCALE);
    } else if (column->kind == DB_KIND_KEY || column->kind == DB_KIND_TEXT) {
        column->precision = int_of(rows, COLUMN_CHARS);
    }
    buffer_printf(&declared, "%s%s%s", type,
                  collation[0] != '\0' ? " COLLATE " : "", collation);
    column->declared = arena_string(arena, buffer_text(&declared));
    buffer_free(&declared);
}

#define COLUMNS                                                                \
    "SELECT column_name, column_type, data_type, character_maximum_length,"    \
    " numeric_precision, numeric_scale, datetime_precision,"                   \
    " collation_name, is_nullable, column_key"                                 \
    " FROM information_schema.columns"                                         \
    " WHERE table_schema = DATABASE() AND table_name = ?1"                     \
    " AND BINARY table_name = ?1 ORDER BY ordinal_position"

/* A unique index of a prefix is refused by the server or covers the whole
 * value. */
#define INDEXES                                                                \
    "SELECT min(column_name), max(non_unique) = 0 AND max(sub_part) IS NULL"   \
    " FROM information_schema.statistics"                                      \
    " WHERE table_schema = DATABASE() AND table_name = ?1"                     \
    " AND BINARY table_name = ?1 AND index_name <> 'PRIMARY'"                  \
    " GROUP BY index_name HAVING count(*) = 1"

enum status mysql_shape_describe(struct db_session *session, const char *name,
                                 struct arena *arena, struct db_shape *shape,
                                 bool *exists, struct diag *diag)
{
    struct driver_shape table = {
        .session = session,
        .query = mysql_rows_query,
        .table = text_of(name),
        .arena = arena,
    };
    enum status status;

    *exists = false;
    *shape = (struct db_shape){.name = arena_string(arena, text_of(name))};
    status = driver_shape_columns(&table, COLUMNS, take_column, diag);
    if (status == STATUS_OK && table.count > 0)
        status = driver_shape_indexes(&table, INDEXES, diag);
    if (status != STATUS_OK || table.count == 0)
        return status;
    shape->columns = table.columns;
    shape->ncolumns = table.count;
    *exists = true;
    return STATUS_OK;
}

/* --- does it fit? --------------------------------------------------------- */

static bool holds_decimal(const struct db_shape_column *wanted,
                          const struct db_shape_column *actual)
{
    return actual->kind == DB_KIND_DECIMAL && actual->scale >= wanted->scale &&
           actual->precision - actual->scale >=
               wanted->precision - wanted->scale;
}

static bool is_text(const struct db_shape_column *actual)
{
    return actual->kind == DB_KIND_DOCUMENT ||
           ((actual->kind == DB_KIND_KEY || actual->kind == DB_KIND_TEXT) &&
            actual->precision >= TEXT_CHARS);
}

static bool fits(const struct db_shape_column *wanted,
                 const struct db_shape_column *actual)
{
    switch (wanted->kind) {
    case DB_KIND_DECIMAL:
        return holds_decimal(wanted, actual);
    case DB_KIND_TEXT:
        return is_text(actual);
    case DB_KIND_KEY: /* trailing spaces count, too */
        return is_text(actual) && strstr(actual->declared, "nopad_bin") != NULL;
    case DB_KIND_DOCUMENT:
        return strncasecmp(actual->declared, "longtext", 8) == 0;
    case DB_KIND_DATE:
        return actual->kind == DB_KIND_DATE ||
               actual->kind == DB_KIND_TIMESTAMP;
    default:
        return wanted->kind == actual->kind;
    }
}

const char *mysql_shape_fits(const struct db_shape_column *wanted,
                             const struct db_shape_column *actual)
{
    static const char *const types[] = {
        [DB_KIND_KEY] = "VARCHAR(255) COLLATE utf8mb4_nopad_bin",
        [DB_KIND_TEXT] = "VARCHAR(255) COLLATE utf8mb4_nopad_bin",
        [DB_KIND_DOCUMENT] = "LONGTEXT",
        [DB_KIND_INTEGER] = "BIGINT",
        [DB_KIND_DOUBLE] = "DOUBLE",
        [DB_KIND_DECIMAL] = "a DECIMAL with as many digits on each side",
        [DB_KIND_BOOLEAN] = "TINYINT(1)",
        [DB_KIND_DATE] = "DATE",
        [DB_KIND_TIME] = "TIME(6)",
        [DB_KIND_TIMESTAMP] = "DATETIME(6)",
        [DB_KIND_UUID] = "CHAR(36) COLLATE ascii_bin",
        [DB_KIND_BYTES] = "LONGBLOB",
        [DB_KIND_OTHER] = "LONGTEXT",
    };

    return fits(wanted, actual) ? NULL : types[wanted->kind];
}
