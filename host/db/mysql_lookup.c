#include "db/mysql_session.h"

#include "base/map.h"
#include "db/driver_bulk.h"

/* Keys per statement: few sizes, so that few statements are prepared; what is
 * missing to the next size is filled up with the last key. */
static const size_t sizes[] = {1, 8, 64, 512};

struct lookup {
    struct db_session *session;
    const struct db_table *table;
    const struct text *keys;
    struct map *places; /* of the keys */
    db_lookup_fn fn;
    void *arg;
};

static size_t size_for(size_t count)
{
    size_t i = 0;

    while (i + 1 < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] < count)
        i++;
    return sizes[i];
}

/* The columns of the row, and behind them the key. */
static enum status build(struct buffer *out, const struct db_table *table,
                         size_t size, struct diag *diag)
{
    const char *key = "";
    enum status status = driver_bulk_check_lookup(table, diag);

    if (status == STATUS_OK)
        status = driver_bulk_check_names(table, diag);
    if (status != STATUS_OK)
        return status;
    buffer_clear(out);
    buffer_append_string(out, "SELECT ");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY)
            key = table->columns[i].name;
        else
            buffer_printf(out, "\"%s\", ", table->columns[i].name);
    }
    buffer_printf(out, "\"%s\" FROM \"%s\" WHERE \"%s\" IN (?", key,
                  table->name, key);
    for (size_t i = 1; i < size; i++)
        buffer_append_string(out, ",?");
    buffer_append_char(out, ')');
    return STATUS_OK;
}

static enum status give_rows(const struct lookup *lookup, struct db_rows *rows,
                             struct diag *diag)
{
    size_t key_column = mysql_rows_columns(rows) - 1;
    enum status status;
    bool more;

    rows->hidden = 1;
    while ((status = mysql_rows_next(rows, &more, diag)) == STATUS_OK && more) {
        int64_t place = map_get(lookup->places,
                                mysql_value_text(rows, key_column));

        if (place == MAP_ABSENT) /* the column compares loosely */
            continue;
        status = lookup->fn(lookup->arg, (size_t)place, rows, diag);
        if (status != STATUS_OK)
            break;
    }
    return status;
}

static enum status look_up(const struct lookup *lookup, size_t first,
                           size_t count, struct diag *diag)
{
    struct db_session *session = lookup->session;
    size_t size = size_for(count);
    struct db_value values[512];
    struct db_rows *rows;
    struct db_sql sql;
    enum status status;

    status = build(&session->text, lookup->table, size, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < size; i++)
        values[i] = db_text_value(
            lookup->keys[first + (i < count ? i : count - 1)]);
    sql = db_sql_make(buffer_text(&session->text), lookup->table->origin);
    status = mysql_rows_query(session, &sql, values, size, &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = give_rows(lookup, rows, diag);
    mysql_rows_close(rows);
    return status;
}

enum status mysql_lookup(struct db_session *session,
                         const struct db_table *table, const struct text *keys,
                         size_t nkeys, db_lookup_fn fn, void *arg,
                         struct diag *diag)
{
    struct map places = MAP_EMPTY;
    const struct lookup lookup = {.session = session,
                                  .table = table,
                                  .keys = keys,
                                  .places = &places,
                                  .fn = fn,
                                  .arg = arg};
    size_t most = sizes[sizeof(sizes) / sizeof(sizes[0]) - 1];
    enum status status = STATUS_OK;
    bool added;

    for (size_t i = 0; i < nkeys; i++)
        (void)map_put(&places, keys[i], (int64_t)i, &added);
    for (size_t first = 0; status == STATUS_OK && first < nkeys;
         first += most) {
        size_t count = nkeys - first < most ? nkeys - first : most;

        status = look_up(&lookup, first, count, diag);
    }
    map_free(&places);
    return status;
}
