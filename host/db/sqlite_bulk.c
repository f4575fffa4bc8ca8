#include "db/sqlite.h"

#include "db/driver_bulk.h"

/* --- building the statement of one row ----------------------------------- */

static void append_mark(struct driver_bulk_text *text, size_t column)
{
    buffer_printf(text->out, "?%zu", column + 1);
}

/*
 * A sum beyond 64 bits would silently become a REAL in a table that is not
 * STRICT; abs() of the smallest integer makes it an error instead.
 */
static void append_sum(struct buffer *out, const struct db_table *table,
                       const struct db_column *column)
{
    const char *t = table->name;
    const char *c = column->name;

    if (column->type != DB_INT64) {
        buffer_printf(out, "coalesce(\"%s\".\"%s\", 0) + excluded.\"%s\"", t, c,
                      c);
        return;
    }
    buffer_printf(out,
                  "CASE WHEN typeof(coalesce(\"%s\".\"%s\", 0) +"
                  " excluded.\"%s\") = 'real'"
                  " AND typeof(\"%s\".\"%s\") = 'integer'"
                  " THEN abs(-9223372036854775807 - 1)"
                  " ELSE coalesce(\"%s\".\"%s\", 0) + excluded.\"%s\" END",
                  t, c, c, t, c, t, c, c);
}

static void append_conflict(struct driver_bulk_text *text)
{
    const struct db_table *table = text->table;
    struct buffer *out = text->out;
    bool first = true;

    buffer_append_string(out, " ON CONFLICT (");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != DB_KEY)
            continue;
        buffer_printf(out, "%s\"%s\"", first ? "" : ", ",
                      table->columns[i].name);
        first = false;
    }
    buffer_append_string(out, ") DO ");
    first = true;
    for (size_t i = 0; i < table->ncolumns; i++) {
        const struct db_column *column = &table->columns[i];

        if (column->role == DB_KEY)
            continue;
        buffer_printf(out, "%s\"%s\" = ", first ? "UPDATE SET " : ", ",
                      column->name);
        first = false;
        if (column->role == DB_ADD)
            append_sum(out, table, column);
        else
            buffer_printf(out, "excluded.\"%s\"", column->name);
    }
    if (first)
        buffer_append_string(out, "NOTHING");
}

/* --- running ------------------------------------------------------------- */

static enum status run_row(struct db_session *session,
                           struct sqlite_statement *statement,
                           const struct db_value *row, size_t ncolumns,
                           struct diag *diag)
{
    enum status status;
    int code;

    for (size_t i = 0; i < ncolumns; i++) {
        status = sqlite_statement_bind(session, statement, (int)i + 1, &row[i],
                                       false, diag);
        if (status != STATUS_OK)
            return status;
    }
    session->round_trips++;
    code = sqlite3_step(statement->handle);
    if (code != SQLITE_DONE)
        return sqlite_error(session, code, diag);
    (void)sqlite3_reset(statement->handle);
    return STATUS_OK;
}

/* A key column tells which row it was; values of others may be private. */
static enum status row_changed(const struct db_table *table,
                               const struct db_value *row, struct diag *diag)
{
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY && row[i].type == DB_TEXT)
            return diag_set(diag, STATUS_CONFLICT,
                            "the row \"" TEXT_FORMAT
                            "\" of table %s was changed by somebody else",
                            TEXT_ARGS(row[i].as.text), table->name);
    }
    return diag_set(diag, STATUS_CONFLICT,
                    "a row of table %s was changed by somebody else",
                    table->name);
}

static enum status run_bulk(struct db_session *session,
                            const struct db_queued *item, struct diag *diag)
{
    const struct db_table *table = item->table;
    bool exact = item->what == DB_UPDATE || item->what == DB_DELETE;
    struct driver_bulk_text text = {
        .out = &session->text,
        .table = table,
        .mark = append_mark,
        .conflict = append_conflict,
    };
    struct sqlite_statement *statement;
    struct db_sql sql;
    enum status status;

    status = driver_bulk_build(&text, item->what, diag);
    if (status != STATUS_OK)
        return status;
    sql = db_sql_make(buffer_text(&session->text), table->origin);
    status = sqlite_cache_take(session, &sql, &statement, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; status == STATUS_OK && i < item->count; i++) {
        const struct db_value *row = item->values + i * table->ncolumns;

        status = run_row(session, statement, row, table->ncolumns, diag);
        if (status == STATUS_OK && exact &&
            sqlite3_changes(session->handle) != 1)
            status = row_changed(table, row, diag);
    }
    sqlite_cache_give(session, statement);
    return status;
}

static enum status run_statement(struct db_session *session,
                                 const struct db_queued *item,
                                 struct diag *diag)
{
    int64_t affected;
    enum status status;

    status = sqlite_statement_execute(session, &item->sql, item->values,
                                      item->count, &affected, diag);
    if (status == STATUS_OK && item->expect != DB_ANY_ROWS &&
        affected != item->expect)
        return diag_set(diag, STATUS_CONFLICT,
                        "a statement touched %lld rows instead of %lld: "
                        "somebody else changed them",
                        (long long)affected, (long long)item->expect);
    return status;
}

enum status sqlite_bulk_run(struct db_session *session,
                            const struct db_queued *queue, size_t count,
                            size_t *failed, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = queue[i].bulk
                                 ? run_bulk(session, &queue[i], diag)
                                 : run_statement(session, &queue[i], diag);

        if (status != STATUS_OK) {
            *failed = i;
            return status;
        }
    }
    return STATUS_OK;
}

/* --- lookup -------------------------------------------------------------- */

static enum status build_lookup(struct buffer *out,
                                const struct db_table *table, struct diag *diag)
{
    bool first = true;
    enum status status = driver_bulk_check_lookup(table, diag);

    if (status == STATUS_OK)
        status = driver_bulk_check_names(table, diag);
    if (status != STATUS_OK)
        return status;
    buffer_clear(out);
    buffer_append_string(out, "SELECT ");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY)
            continue;
        buffer_printf(out, "%s\"%s\"", first ? "" : ", ",
                      table->columns[i].name);
        first = false;
    }
    buffer_printf(out, "%s FROM \"%s\" WHERE ", first ? "1" : "", table->name);
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY)
            buffer_printf(out, "\"%s\" = ?1", table->columns[i].name);
    }
    return STATUS_OK;
}

static enum status lookup_key(struct sqlite_rows *rows, struct text key,
                              size_t index, db_lookup_fn fn, void *arg,
                              struct diag *diag)
{
    struct db_session *session = rows->session;
    struct db_value value = db_text_value(key);
    enum status status;
    int code;

    status = sqlite_statement_bind(session, rows->statement, 1, &value, false,
                                   diag);
    if (status != STATUS_OK)
        return status;
    session->round_trips++;
    code = sqlite3_step(rows->statement->handle);
    if (code == SQLITE_ROW)
        status = fn(arg, index, &rows->base, diag);
    else if (code != SQLITE_DONE)
        status = sqlite_error(session, code, diag);
    if (status == STATUS_OK)
        (void)sqlite3_reset(rows->statement->handle);
    return status;
}

enum status sqlite_bulk_lookup(struct db_session *session,
                               const struct db_table *table,
                               const struct text *keys, size_t nkeys,
                               db_lookup_fn fn, void *arg, struct diag *diag)
{
    struct sqlite_rows rows = {.base.driver = &db_sqlite_driver,
                               .session = session};
    struct db_sql sql;
    enum status status;

    status = build_lookup(&session->text, table, diag);
    if (status != STATUS_OK)
        return status;
    sql = db_sql_make(buffer_text(&session->text), table->origin);
    status = sqlite_cache_take(session, &sql, &rows.statement, diag);
    for (size_t i = 0; status == STATUS_OK && i < nkeys; i++)
        status = lookup_key(&rows, keys[i], i, fn, arg, diag);
    if (rows.statement != NULL)
        sqlite_cache_give(session, rows.statement);
    return status;
}
