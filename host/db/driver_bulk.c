#include "db/driver_bulk.h"

#include <string.h>

#define NAME_MAX_LEN 63 /* the shortest limit among the dialects */

enum status driver_bulk_check_name(const char *name, struct diag *diag)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t len = strspn(name, letters);

    if (len > 0 && len <= NAME_MAX_LEN && name[len] == '\0' &&
        (name[0] < '0' || name[0] > '9'))
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "\"%s\" cannot be the name of a table or column: use "
                    "letters, digits and underscores, at most %d of them",
                    name, NAME_MAX_LEN);
}

enum status driver_bulk_check_names(const struct db_table *table,
                                    struct diag *diag)
{
    enum status status = driver_bulk_check_name(table->name, diag);

    for (size_t i = 0; status == STATUS_OK && i < table->ncolumns; i++)
        status = driver_bulk_check_name(table->columns[i].name, diag);
    return status;
}

static size_t count_role(const struct db_table *table, enum db_role role)
{
    size_t count = 0;

    for (size_t i = 0; i < table->ncolumns; i++)
        count += table->columns[i].role == role;
    return count;
}

enum status driver_bulk_check_roles(enum db_bulk what,
                                    const struct db_table *table,
                                    struct diag *diag)
{
    size_t keys = count_role(table, DB_KEY);
    size_t guards = count_role(table, DB_GUARD);
    size_t sets = count_role(table, DB_SET);
    size_t adds = count_role(table, DB_ADD);
    bool good = false;

    switch (what) {
    case DB_INSERT:
        good = guards == 0 && table->ncolumns > 0;
        break;
    case DB_UPSERT:
        good = guards == 0 && keys > 0;
        break;
    case DB_UPDATE:
        good = keys > 0 && sets > 0 && adds == 0;
        break;
    case DB_DELETE:
        good = keys > 0 && sets == 0 && adds == 0;
        break;
    }
    if (good)
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "the columns of a bulk statement on table %s do not fit it",
                    table->name);
}

enum status driver_bulk_check_lookup(const struct db_table *table,
                                     struct diag *diag)
{
    if (count_role(table, DB_KEY) == 1)
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "a lookup in table %s needs one key column", table->name);
}

/* --- the statement of one row --------------------------------------------- */

/* Appends "column" = and its mark for the columns of a role. */
static void append_equals(struct driver_bulk_text *text, enum db_role role,
                          const char *between, bool *first)
{
    for (size_t i = 0; i < text->table->ncolumns; i++) {
        if (text->table->columns[i].role != role)
            continue;
        buffer_printf(text->out, "%s\"%s\" = ", *first ? "" : between,
                      text->table->columns[i].name);
        text->mark(text, i);
        *first = false;
    }
}

static void append_where(struct driver_bulk_text *text)
{
    bool first = true;

    buffer_append_string(text->out, " WHERE ");
    append_equals(text, DB_KEY, " AND ", &first);
    append_equals(text, DB_GUARD, " AND ", &first);
}

static void append_insert(struct driver_bulk_text *text)
{
    const struct db_table *table = text->table;

    buffer_printf(text->out, "INSERT INTO \"%s\" (", table->name);
    for (size_t i = 0; i < table->ncolumns; i++)
        buffer_printf(text->out, "%s\"%s\"", i > 0 ? ", " : "",
                      table->columns[i].name);
    buffer_append_string(text->out, ") VALUES (");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (i > 0)
            buffer_append_string(text->out, ", ");
        text->mark(text, i);
    }
    buffer_append_char(text->out, ')');
}

enum status driver_bulk_build(struct driver_bulk_text *text, enum db_bulk what,
                              struct diag *diag)
{
    bool first = true;
    enum status status = driver_bulk_check_roles(what, text->table, diag);

    if (status == STATUS_OK)
        status = driver_bulk_check_names(text->table, diag);
    if (status != STATUS_OK)
        return status;
    buffer_clear(text->out);
    switch (what) {
    case DB_INSERT:
        append_insert(text);
        break;
    case DB_UPSERT:
        append_insert(text);
        text->conflict(text);
        break;
    case DB_UPDATE:
        buffer_printf(text->out, "UPDATE \"%s\" SET ", text->table->name);
        append_equals(text, DB_SET, ", ", &first);
        append_where(text);
        break;
    case DB_DELETE:
        buffer_printf(text->out, "DELETE FROM \"%s\"", text->table->name);
        append_where(text);
        break;
    }
    return STATUS_OK;
}
