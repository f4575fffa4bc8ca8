#include "db/driver_shape.h"

#include "db/driver_bulk.h"

enum status driver_shape_check_names(const struct db_shape *shape,
                                     struct diag *diag)
{
    enum status status = driver_bulk_check_name(shape->name, diag);

    for (size_t i = 0; status == STATUS_OK && i < shape->ncolumns; i++)
        status = driver_bulk_check_name(shape->columns[i].name, diag);
    return status;
}

void driver_shape_print_key(const struct db_shape *shape, char quote,
                            struct buffer *out)
{
    bool first = true;

    for (size_t i = 0; i < shape->ncolumns; i++) {
        if (!shape->columns[i].primary)
            continue;
        buffer_printf(out, "%s%c%s%c", first ? ",\n    PRIMARY KEY (" : ", ",
                      quote, shape->columns[i].name, quote);
        first = false;
    }
    if (!first)
        buffer_append_char(out, ')');
}

enum status driver_shape_create(
    struct db_session *session, const struct db_shape *shape,
    void (*print)(const struct db_shape *shape, struct buffer *out),
    enum status (*script)(struct db_session *session, struct text script,
                          enum db_origin origin, struct diag *diag),
    struct diag *diag)
{
    struct buffer text = BUFFER_EMPTY;
    enum status status;

    print(shape, &text);
    status = script(session, buffer_text(&text), DB_HOST, diag);
    buffer_free(&text);
    if (status != STATUS_OK)
        (void)diag_wrap(diag, "table %s", shape->name);
    return status;
}

/* --- and back ------------------------------------------------------------- */

static enum status open_query(const struct driver_shape *shape,
                              const char *query, struct db_rows **rows,
                              struct diag *diag)
{
    struct db_sql sql = db_sql_make(text_of(query), DB_HOST);
    struct db_value param = db_text_value(shape->table);

    return shape->query(shape->session, &sql, &param, 1, rows, diag);
}

enum status driver_shape_columns(struct driver_shape *shape, const char *query,
                                 driver_shape_column_fn take, struct diag *diag)
{
    struct db_rows *rows;
    bool more;
    enum status status = open_query(shape, query, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = rows->driver->next(rows, &more, diag)) == STATUS_OK &&
           more) {
        shape->columns = arena_grow(shape->arena, shape->columns, shape->count,
                                    sizeof(*shape->columns));
        take(rows, shape->arena, &shape->columns[shape->count++]);
    }
    rows->driver->rows_close(rows);
    return status;
}

enum status driver_shape_indexes(struct driver_shape *shape, const char *query,
                                 struct diag *diag)
{
    struct db_rows *rows;
    bool more;
    enum status status = open_query(shape, query, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = rows->driver->next(rows, &more, diag)) == STATUS_OK &&
           more) {
        struct text indexed = rows->driver->get_text(rows, 0);
        bool unique = rows->driver->get_bool(rows, 1);

        for (size_t i = 0; i < shape->count; i++) {
            struct db_shape_column *column = &shape->columns[i];

            if (!text_equal(text_of(column->name), indexed))
                continue;
            column->indexed = true;
            column->unique = column->unique || unique;
        }
    }
    rows->driver->rows_close(rows);
    return status;
}
