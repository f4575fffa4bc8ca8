#include "db/mysql_session.h"

#include "db/driver_bulk.h"

/* The columns that the statement's marks stand for, in the marks' order. */
struct marks {
    size_t *order;
    size_t count;
};

static void append_mark(struct driver_bulk_text *text, size_t column)
{
    struct marks *marks = text->arg;

    buffer_append_char(text->out, '?');
    marks->order[marks->count++] = column;
}

/*
 * ON DUPLICATE KEY UPDATE acts on the row of whichever unique key was hit. A
 * row that holds another key than the one asked for must not be touched: its
 * key would become NULL, which a key refuses.
 */
static void append_conflict(struct driver_bulk_text *text)
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

enum status mysql_bulk_text(struct db_session *session, enum db_bulk what,
                            const struct db_table *table, size_t *order,
                            size_t *norder, struct diag *diag)
{
    struct marks marks = {.order = order};
    struct driver_bulk_text text = {
        .out = &session->text,
        .table = table,
        .mark = append_mark,
        .conflict = append_conflict,
        .arg = &marks,
    };
    enum status status = driver_bulk_build(&text, what, diag);

    *norder = marks.count;
    return status;
}
