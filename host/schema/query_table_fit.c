#include "schema/query_table_fit.h"

#include "base/buffer.h"

#include <stdio.h>
#include <strings.h>

static const struct db_shape_column *find_column(const struct db_shape *shape,
                                                 const char *name)
{
    for (size_t i = 0; i < shape->ncolumns; i++)
        if (strcasecmp(shape->columns[i].name, name) == 0)
            return &shape->columns[i];
    return NULL;
}

/* The type a column is declared with: what it should be instead of a column
 * that holds nothing of use. */
static const char *declared_type(const struct query_table_fit *check,
                                 const struct db_shape_column *wanted)
{
    static const struct db_shape_column useless = {
        .name = "", .kind = DB_KIND_OTHER, .declared = ""};

    return db_column_fits(check->db, wanted, &useless);
}

static const char *uniqueness(const struct db_shape_column *column)
{
    return column->unique ? "unique" : "not unique";
}

static void print_literal(struct buffer *out, const char *text)
{
    buffer_append_char(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buffer_append_char(out, '\'');
        buffer_append_char(out, *text);
    }
    buffer_append_char(out, '\'');
}

void query_table_fit_remedy(const struct names *names,
                            const struct query_table *table, bool exists,
                            struct buffer *out)
{
    static const enum table_id rows[] = {TABLE_SKIPPED, TABLE_UNDELIVERED,
                                         TABLE_CHECKPOINTS};
    struct buffer name = BUFFER_EMPTY;
    const char *consumers = names->table[TABLE_CONSUMERS];

    print_literal(&name, table->projection);
    if (exists)
        buffer_printf(out, "\n  DROP TABLE %s;", table->name);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        buffer_printf(out,
                      "\n  DELETE FROM %s WHERE consumer_id = (SELECT id FROM "
                      "%s WHERE consumer_type = 'projection' AND "
                      "consumer_name = %s);",
                      names->table[rows[i]], consumers, name.data);
    buffer_printf(out, "\n  DELETE FROM %s WHERE projection = %s;",
                  names->table[TABLE_EPOCHS], name.data);
    buffer_printf(out,
                  "\n  DELETE FROM %s WHERE consumer_type = 'projection' AND "
                  "consumer_name = %s;",
                  consumers, name.data);
    buffer_free(&name);
}

/* `fault` is a whole clause with both shapes. */
static enum status wrong_shape(const struct query_table_fit *check,
                               const char *column, const char *fault)
{
    struct buffer remedy = BUFFER_EMPTY;
    enum status status;

    *check->wrong = true;
    if (check->create)
        buffer_printf(&remedy,
                      "`moontide rebuild %s` makes the table anew and derives "
                      "everything again; by hand, to let the projection start "
                      "anew:",
                      check->table->projection);
    else
        buffer_append_string(&remedy, "to let the projection start anew "
                                      "(schema.create is off: create the "
                                      "table then):");
    query_table_fit_remedy(check->names, check->table, true, &remedy);
    status = diag_set(check->diag, STATUS_CONFIG,
                      "projection \"%s\", table \"%s\", column \"%s\": %s; %s",
                      check->table->projection, check->table->name, column,
                      fault, remedy.data);
    buffer_free(&remedy);
    return status;
}

static enum status no_query_table(const struct query_table_fit *check,
                                  const char *lacking)
{
    return diag_set(check->diag, STATUS_CONFIG,
                    "projection \"%s\": table \"%s\" has no column \"%s\" and "
                    "is no query table; give the projection a table of its "
                    "own with `table`",
                    check->table->projection, check->table->name, lacking);
}

static enum status check_type(const struct query_table_fit *check,
                              const struct db_shape_column *wanted)
{
    const struct db_shape_column *actual = find_column(check->actual,
                                                       wanted->name);
    const char *should;
    char fault[256];

    if (actual == NULL) {
        snprintf(fault, sizeof(fault), "declared as %s, missing in the table",
                 declared_type(check, wanted));
        return wrong_shape(check, wanted->name, fault);
    }
    should = db_column_fits(check->db, wanted, actual);
    if (should == NULL)
        return STATUS_OK;
    snprintf(fault, sizeof(fault),
             "declared as %s, in the table it is %s, which cannot hold every "
             "value",
             should, actual->declared);
    return wrong_shape(check, wanted->name, fault);
}

/* A primary key of several columns lets one key occur twice. */
static bool is_own_key(const struct db_shape *shape,
                       const struct db_shape_column *column)
{
    if (column->unique)
        return true;
    for (size_t i = 0; i < shape->ncolumns; i++)
        if (shape->columns[i].primary != (&shape->columns[i] == column))
            return false;
    return true;
}

static enum status check_key(const struct query_table_fit *check)
{
    const struct db_shape_column *wanted = &check->wanted->columns[0];
    const struct db_shape_column *actual = find_column(check->actual,
                                                       wanted->name);
    enum status status = check_type(check, wanted);

    if (status != STATUS_OK || is_own_key(check->actual, actual))
        return status;
    return wrong_shape(check, wanted->name,
                       "declared as the primary key, in the table it is "
                       "neither that nor unique");
}

static enum status check_unique(const struct query_table_fit *check,
                                const struct db_shape_column *wanted)
{
    const struct db_shape_column *actual = find_column(check->actual,
                                                       wanted->name);
    char fault[256];

    if (actual->unique == wanted->unique)
        return STATUS_OK;
    snprintf(fault, sizeof(fault), "declared %s, in the table it is %s (%s)",
             uniqueness(wanted), uniqueness(actual),
             wanted->unique ? "it has no unique index of its own"
                            : "it has a unique index");
    return wrong_shape(check, wanted->name, fault);
}

enum status query_table_fit_check(const struct query_table_fit *check)
{
    enum status status;

    for (size_t i = 0; i < 2; i++)
        if (find_column(check->actual, check->wanted->columns[i].name) == NULL)
            return no_query_table(check, check->wanted->columns[i].name);
    status = check_key(check);
    for (size_t i = 1; i < check->wanted->ncolumns && status == STATUS_OK; i++)
        status = check_type(check, &check->wanted->columns[i]);
    for (size_t i = QUERY_TABLE_HOST_COLUMNS;
         i < check->wanted->ncolumns && status == STATUS_OK; i++)
        status = check_unique(check, &check->wanted->columns[i]);
    return status;
}
