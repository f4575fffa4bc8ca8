#include "db/mysql_session.h"

#define NAME_MAX_LEN 63 /* the shortest limit among the dialects */

enum status mysql_bulk_name(struct buffer *out, const char *name,
                            struct diag *diag)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t len = strspn(name, letters);

    if (len == 0 || len > NAME_MAX_LEN || name[len] != '\0' ||
        (name[0] >= '0' && name[0] <= '9'))
        return diag_set(diag, STATUS_PERMANENT,
                        "\"%s\" cannot be the name of a table or column: use "
                        "letters, digits and underscores, at most %d of them",
                        name, NAME_MAX_LEN);
    buffer_append_char(out, '"');
    buffer_append(out, name, len);
    buffer_append_char(out, '"');
    return STATUS_OK;
}

enum status mysql_bulk_check_names(struct buffer *scratch,
                                   const struct db_table *table,
                                   struct diag *diag)
{
    enum status status = mysql_bulk_name(scratch, table->name, diag);

    for (size_t i = 0; status == STATUS_OK && i < table->ncolumns; i++)
        status = mysql_bulk_name(scratch, table->columns[i].name, diag);
    buffer_clear(scratch);
    return status;
}

struct bulk_text {
    struct buffer *out;
    const struct db_table *table;
    size_t *order;
    size_t norder;
};

static void append_mark(struct bulk_text *text, size_t column)
{
    buffer_append_char(text->out, '?');
    text->order[text->norder++] = column;
}

/* Appends "column" = ? for the columns of a role, `between` them. */
static void append_equals(struct bulk_text *text, enum db_role role,
                          const char *between, bool *first)
{
    for (size_t i = 0; i < text->table->ncolumns; i++) {
        if (text->table->columns[i].role != role)
            continue;
        buffer_printf(text->out, "%s\"%s\" = ", *first ? "" : between,
                      text->table->columns[i].name);
        append_mark(text, i);
        *first = false;
    }
}

static void append_where(struct bulk_text *text)
{
    bool first = true;

    buffer_append_string(text->out, " WHERE ");
    append_equals(text, DB_KEY, " AND ", &first);
    append_equals(text, DB_GUARD, " AND ", &first);
}

static void append_insert(struct bulk_text *text)
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
        append_mark(text, i);
    }
    buffer_append_char(text->out, ')');
}

/*
 * ON DUPLICATE KEY UPDATE acts on the row of whichever unique key was hit. A
 * row that holds another key than the one asked for must not be touched: its
 * key would become NULL, which a key refuses.
 */
static void append_conflict(struct bulk_text *text)
{
    const struct db_table *table = text->table;

    buffer_append_string(text->out, " ON DUPLICATE KEY UPDATE ");
    for (size_t i = 0; i < table->ncolumns; i++) {
        const char *t = table->name;
        const char *c = table->columns[i].name;

        if (i > 0)
            buffer_append_string(text->out, ", ");
        if (table->columns[i].role == DB_KEY)
            buffer_printf(text->out,
                          "\"%s\" = IF(\"%s\".\"%s\" = VALUES(\"%s\"),"
                          " \"%s\".\"%s\", NULL)",
                          c, t, c, c, t, c);
        else if (table->columns[i].role == DB_ADD)
            buffer_printf(text->out,
                          "\"%s\" = COALESCE(\"%s\".\"%s\", 0)"
                          " + VALUES(\"%s\")",
                          c, t, c, c);
        else
            buffer_printf(text->out, "\"%s\" = VALUES(\"%s\")", c, c);
    }
}

static size_t count_role(const struct db_table *table, enum db_role role)
{
    size_t count = 0;

    for (size_t i = 0; i < table->ncolumns; i++)
        count += table->columns[i].role == role;
    return count;
}

static enum status check_roles(enum db_bulk what, const struct db_table *table,
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

enum status mysql_bulk_text(struct db_session *session, enum db_bulk what,
                            const struct db_table *table, size_t *order,
                            size_t *norder, struct diag *diag)
{
    struct bulk_text text = {
        .out = &session->text, .table = table, .order = order};
    bool first = true;
    enum status status = check_roles(what, table, diag);

    buffer_clear(text.out);
    if (status == STATUS_OK)
        status = mysql_bulk_check_names(text.out, table, diag);
    if (status != STATUS_OK)
        return status;
    switch (what) {
    case DB_INSERT:
        append_insert(&text);
        break;
    case DB_UPSERT:
        append_insert(&text);
        append_conflict(&text);
        break;
    case DB_UPDATE:
        buffer_printf(text.out, "UPDATE \"%s\" SET ", table->name);
        append_equals(&text, DB_SET, ", ", &first);
        append_where(&text);
        break;
    case DB_DELETE:
        buffer_printf(text.out, "DELETE FROM \"%s\"", table->name);
        append_where(&text);
        break;
    }
    *norder = text.norder;
    return STATUS_OK;
}
