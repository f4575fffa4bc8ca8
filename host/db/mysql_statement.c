#include "db/mysql_session.h"

enum status mysql_statement_run(struct db_session *session, const char *text,
                                struct diag *diag)
{
    mysql_rows_settle(session);
    session->round_trips++;
    if (mysql_query(session->handle, text) != 0)
        return mysql_fault_handle(session, diag);
    return STATUS_OK;
}

enum status mysql_statement_run_two(struct db_session *session,
                                    const char *first, const char *second,
                                    struct diag *diag)
{
    const char *texts[] = {first, second};
    enum status status = STATUS_OK;

    mysql_rows_settle(session);
    session->round_trips++;
    for (size_t i = 0; i < 2; i++) {
        if (mysql_send_query(session->handle, texts[i], strlen(texts[i])) != 0)
            return mysql_fault_handle(session, diag);
    }
    for (size_t i = 0; i < 2; i++) {
        bool good = mysql_read_query_result(session->handle) == 0;

        if (!good && status == STATUS_OK)
            status = mysql_fault_handle(session, diag);
        if (session->broken)
            break;
    }
    return status;
}

/* A result that nobody asked for is read to its end: an error may be there. */
static enum status drop_result(struct db_session *session, MYSQL_STMT *stmt,
                               int64_t *rows, struct diag *diag)
{
    if (mysql_stmt_store_result(stmt) != 0)
        return mysql_fault_statement(session, stmt, diag);
    *rows = (int64_t)mysql_stmt_num_rows(stmt);
    (void)mysql_stmt_free_result(stmt);
    return STATUS_OK;
}

/* The rows of INSERT ... RETURNING were touched, those of a SELECT were not. */
bool mysql_statement_writes(struct text sql)
{
    struct mysql_scan scan = {sql.data, sql.data + sql.len};
    struct mysql_token token;

    do {
        token = mysql_scan_next(&scan);
    } while (token.kind == MYSQL_TOKEN_SIGN);
    return mysql_scan_is(&token, "INSERT") ||
           mysql_scan_is(&token, "REPLACE") ||
           mysql_scan_is(&token, "DELETE") || mysql_scan_is(&token, "UPDATE");
}

static enum status execute(struct db_session *session,
                           struct mysql_statement *statement, int64_t *affected,
                           struct diag *diag)
{
    MYSQL_STMT *stmt = statement->handle;
    unsigned array_size = 0;
    int64_t rows = 0;
    enum status status;

    (void)mysql_stmt_attr_set(stmt, STMT_ATTR_ARRAY_SIZE, &array_size);
    session->round_trips++;
    session->touched = true;
    if (mysql_stmt_execute(stmt) != 0)
        return mysql_fault_statement(session, stmt, diag);
    if (mysql_stmt_field_count(stmt) == 0) {
        *affected = (int64_t)mysql_stmt_affected_rows(stmt);
        return STATUS_OK;
    }
    status = drop_result(session, stmt, &rows, diag);
    *affected = mysql_statement_writes(statement->text) ? rows : 0;
    return status;
}

enum status mysql_statement_execute(struct db_session *session,
                                    const struct db_sql *sql,
                                    const struct db_value *params,
                                    size_t nparams, int64_t *affected,
                                    struct diag *diag)
{
    struct mysql_statement *statement;
    int64_t unseen;
    enum status status;

    if (affected == NULL)
        affected = &unseen;
    *affected = 0;
    status = mysql_connect_limit(session, sql->origin, diag);
    if (status == STATUS_OK)
        status = mysql_cache_take(session, sql, &statement, diag);
    if (status != STATUS_OK)
        return status;
    status = mysql_param_bind(session, statement, params, nparams, diag);
    if (status == STATUS_OK)
        status = execute(session, statement, affected, diag);
    /* after an error amid its rows the library would wait for the others */
    if (status != STATUS_OK && statement->gives_rows)
        mysql_cache_drop(session, statement);
    else
        mysql_cache_give(session, statement);
    return status;
}

/* --- scripts -------------------------------------------------------------- */

static size_t line_of(struct text script, const char *at)
{
    size_t line = 1;

    for (const char *c = script.data; c < at; c++)
        line += *c == '\n';
    return line;
}

/* The database's own collation may merge keys that differ: `A-1` and `a-1`.
 * A script's table that says nothing of it compares byte by byte. */
static bool wants_collation(struct text sql)
{
    static const char *const says[] = {"CHARSET", "CHARACTER", "COLLATE",
                                       "SELECT",  "LIKE",      "PARTITION"};
    struct mysql_scan scan = {sql.data, sql.data + sql.len};
    struct mysql_token token = mysql_scan_next(&scan);
    struct mysql_token next = mysql_scan_next(&scan);

    if (!mysql_scan_is(&token, "CREATE") || !mysql_scan_is(&next, "TABLE"))
        return false;
    while ((token = mysql_scan_next(&scan)).kind != MYSQL_TOKEN_END) {
        for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
            if (mysql_scan_is(&token, says[i]))
                return false;
        }
    }
    return true;
}

static enum status run_one(struct db_session *session, struct text sql,
                           enum db_origin origin, struct diag *diag)
{
    enum status status = mysql_guard(sql, origin, true, session->host_tables,
                                     diag);
    MYSQL_RES *result;

    if (status != STATUS_OK)
        return status;
    mysql_rows_settle(session);
    buffer_clear(&session->text);
    buffer_append_text(&session->text, sql);
    if (origin != DB_HOST && wants_collation(sql))
        buffer_append_string(&session->text, "\nDEFAULT CHARACTER SET utf8mb4"
                                             " COLLATE utf8mb4_nopad_bin");
    session->round_trips++;
    session->touched = true;
    if (mysql_real_query(session->handle, session->text.data,
                         session->text.len) != 0)
        return mysql_fault_handle(session, diag);
    result = mysql_store_result(session->handle);
    if (result != NULL)
        mysql_free_result(result);
    else if (mysql_field_count(session->handle) > 0)
        return mysql_fault_handle(session, diag);
    return STATUS_OK;
}

enum status mysql_statement_script(struct db_session *session,
                                   struct text script, enum db_origin origin,
                                   struct diag *diag)
{
    struct text delimiter = TEXT_NONE;
    struct text sql;
    size_t at = 0;

    while (mysql_scan_statement(script, &at, &delimiter, &sql)) {
        enum status status = run_one(session, sql, origin, diag);

        if (status != STATUS_OK)
            return diag_wrap(diag, "line %zu of the script",
                             line_of(script, sql.data));
    }
    return STATUS_OK;
}
