#include "db/postgres.h"

#include "base/memory.h"
#include "db/driver_bulk.h"

static bool reads_as_text(unsigned type)
{
    return type == PG_TEXT || type == PG_VARCHAR || type == PG_BPCHAR ||
           type == PG_JSON || type == PG_NAME;
}

/* The wanted columns, and last the number of the key. */
static void build_lookup(struct buffer *out, const struct db_table *table,
                         const struct postgres_column **wants, size_t key)
{
    buffer_clear(out);
    buffer_append_string(out, "SELECT ");
    for (size_t i = 0; i < table->ncolumns; i++) {
        enum db_type type = table->columns[i].type;

        if (i == key)
            continue;
        buffer_append_string(out, "t.");
        postgres_bulk_append(out, table->columns[i].name);
        if ((type == DB_TEXT || type == DB_DECIMAL) &&
            !reads_as_text(wants[i]->type))
            buffer_append_string(out, "::text");
        buffer_append_string(out, ", ");
    }
    buffer_append_string(
        out, "u.n FROM unnest(?1::text[]) WITH ORDINALITY AS u(k, n) JOIN ");
    postgres_bulk_append(out, table->name);
    buffer_append_string(out, " AS t ON t.");
    postgres_bulk_append(out, table->columns[key].name);
    buffer_append_string(out, " = u.k");
    if (postgres_bulk_needs_cast(PG_TEXT, wants[key]->type))
        buffer_printf(out, "::%s", wants[key]->type_name);
}

static enum status give_rows(struct db_rows *rows, size_t nkeys,
                             db_lookup_fn fn, void *arg, struct diag *diag)
{
    size_t last = postgres_rows_columns(rows) - 1;
    enum status status = STATUS_OK;

    rows->hidden = 1;
    for (;;) {
        bool more;
        int64_t number;

        status = postgres_rows_next(rows, &more, diag);
        if (status != STATUS_OK || !more)
            return status;
        number = postgres_rows_get_int64(rows, last);
        if (number < 1 || (uint64_t)number > nkeys)
            return diag_set(diag, STATUS_PERMANENT,
                            "a lookup gave a row that was not asked for");
        status = fn(arg, (size_t)number - 1, rows, diag);
        if (status != STATUS_OK)
            return status;
    }
}

static struct db_sql lookup_sql(struct db_session *session,
                                const struct db_table *table,
                                const struct postgres_column **wants)
{
    size_t key = 0;

    while (table->columns[key].role != DB_KEY)
        key++;
    build_lookup(&session->text, table, wants, key);
    return db_sql_make(buffer_text(&session->text), DB_HOST);
}

static enum status ask(struct db_session *session, const struct db_table *table,
                       const struct postgres_column **wants,
                       const struct db_value *keys, struct db_rows **rows,
                       struct diag *diag)
{
    struct db_sql sql = lookup_sql(session, table, wants);

    return postgres_rows_query(session, &sql, keys, 1, rows, diag);
}

static enum status ask_behind(struct db_session *session,
                              const struct db_queued *queue, size_t count,
                              size_t *failed, const struct db_table *table,
                              const struct postgres_column **wants,
                              const struct db_value *keys,
                              struct db_rows **rows, struct diag *diag)
{
    PGresult *result = NULL;
    struct db_sql sql;
    enum status status = postgres_bulk_lead(session, queue, count, failed,
                                            diag);

    if (status != STATUS_OK)
        return status;
    /* the queue has been in its place until now */
    sql = lookup_sql(session, table, wants);
    status = postgres_statement_send(session, &sql, keys, 1, DB_ANY_ROWS,
                                     PG_NO_ITEM, diag);
    if (status == STATUS_OK)
        status = postgres_pipe_finish(session, &result, failed, diag);
    else
        status = postgres_bulk_drain(session, status, failed, diag);
    if (status == STATUS_OK)
        *rows = postgres_rows_new(result);
    else if (status == STATUS_PERMANENT) /* a table may have been altered */
        postgres_columns_forget(session);
    return status;
}

enum status postgres_lookup_behind(struct db_session *session,
                                   const struct db_queued *queue, size_t count,
                                   size_t *failed, const struct db_table *table,
                                   const struct text *keys, size_t nkeys,
                                   db_lookup_fn fn, void *arg,
                                   struct diag *diag)
{
    const struct postgres_column **wants = mem_alloc((table->ncolumns + 1) *
                                                     sizeof(void *));
    const struct db_value param = db_texts(keys, nkeys);
    struct db_rows *rows = NULL;
    enum status status = driver_bulk_check_lookup(table, diag);

    if (status == STATUS_OK)
        status = postgres_bulk_columns(session, table, wants, diag);
    if (status == STATUS_OK && count == 0)
        status = ask(session, table, wants, &param, &rows, diag);
    else if (status == STATUS_OK)
        status = ask_behind(session, queue, count, failed, table, wants, &param,
                            &rows, diag);
    mem_free((void *)wants);
    if (status != STATUS_OK)
        return status;
    status = give_rows(rows, nkeys, fn, arg, diag);
    postgres_rows_close(rows);
    return status;
}

enum status postgres_lookup_rows(struct db_session *session,
                                 const struct db_table *table,
                                 const struct text *keys, size_t nkeys,
                                 db_lookup_fn fn, void *arg, struct diag *diag)
{
    size_t failed = 0;

    return postgres_lookup_behind(session, NULL, 0, &failed, table, keys, nkeys,
                                  fn, arg, diag);
}
