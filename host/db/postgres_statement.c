#include "db/postgres.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* Hosts of one schema that start at once make tables one after the other; the
 * number is arbitrary, but the same in every version. */
#define SCRIPT_LOCK                                                            \
    "SELECT pg_advisory_xact_lock(5638276114023 + coalesce((SELECT"            \
    " oid::bigint FROM pg_catalog.pg_namespace"                                \
    " WHERE nspname = current_schema()), 0))"

/* --- one statement ------------------------------------------------------- */

/*
 * A statement that must touch a certain number of rows counts them itself and
 * fails on another number, so the COMMIT behind it in the same pipeline never
 * runs. To look at the count from here would cost a round trip.
 */
static void append_counted(struct buffer *out, const struct db_sql *sql,
                           bool reads, size_t nparams)
{
    char sign = sql->origin == DB_HOST ? '?' : '$';

    buffer_append_string(out, "WITH moontide_rows AS (\n");
    buffer_append_text(out, sql->text);
    buffer_append_string(out, reads ? "\n" : "\nRETURNING 1");
    buffer_printf(out,
                  ") SELECT CASE WHEN count(*) = %c%zu::bigint THEN 0 ELSE"
                  " CAST('" PG_COUNT_MARK "a statement touched ' || count(*) ||"
                  " ' rows instead of ' || %c%zu::bigint ||"
                  " ': somebody else changed them" PG_COUNT_END
                  "' AS integer) END FROM moontide_rows",
                  sign, nparams + 1, sign, nparams + 1);
}

static bool only_reads(struct text sql)
{
    const char *end = sql.data + sql.len;
    const char *at = postgres_guard_skip(sql.data, end);

    return (end - at > 6 && strncasecmp(at, "SELECT", 6) == 0) ||
           (end - at > 6 && strncasecmp(at, "VALUES", 6) == 0);
}

/* Reading touches nothing. When the host expects rows of it all the same, it is
 * the number of those that it gives. */
static bool is_counted(const struct db_sql *sql, int64_t expect)
{
    if (expect == DB_ANY_ROWS)
        return false;
    return !only_reads(sql->text) || (sql->origin == DB_HOST && expect > 0);
}

static enum status send_counted(struct db_session *session,
                                const struct db_sql *sql,
                                const struct db_value *params, size_t nparams,
                                int64_t expect, size_t item, struct diag *diag)
{
    struct db_value *all = mem_grow(NULL, nparams + 1, sizeof(*all));
    struct db_sql counted;
    enum status status;

    buffer_clear(&session->text);
    append_counted(&session->text, sql, only_reads(sql->text), nparams);
    counted = db_sql_make(buffer_text(&session->text), sql->origin);
    if (nparams > 0)
        memcpy(all, params, nparams * sizeof(*all));
    all[nparams] = db_integer(expect);
    status = postgres_param_encode(&session->params, all, nparams + 1,
                                   sql->origin, diag);
    if (status == STATUS_OK)
        status = postgres_cache_send(session, &counted, &session->params, true,
                                     item, diag);
    mem_free(all);
    return status;
}

/*
 * A function that a query calls may write as well as an UPDATE: the server
 * itself must hold the statement to reading. A read-only state set under a
 * savepoint ends with it.
 */
static enum status send_reading(struct db_session *session,
                                const struct db_sql *sql, size_t item,
                                struct diag *diag)
{
    bool savepoint = session->in_transaction && session->writes;
    enum status status = STATUS_OK;

    if (savepoint)
        status = postgres_pipe_text(session, PG_SENT_SETTING,
                                    "SAVEPOINT moontide_read", diag);
    if (status == STATUS_OK)
        status = postgres_pipe_text(
            session, PG_SENT_SETTING,
            "SELECT set_config('transaction_read_only', 'on', true)", diag);
    if (status == STATUS_OK)
        status = postgres_cache_send(session, sql, &session->params, false,
                                     item, diag);
    session->origin = DB_HOST;
    if (status == STATUS_OK && savepoint)
        status = postgres_pipe_text(session, PG_SENT_SETTING,
                                    "RELEASE moontide_read", diag);
    return status;
}

/* What scripts ask for has any type, and only text can be read of all of
 * them; the host's own columns are of the few types it reads as they are. */
enum status postgres_statement_send(struct db_session *session,
                                    const struct db_sql *sql,
                                    const struct db_value *params,
                                    size_t nparams, int64_t expect, size_t item,
                                    struct diag *diag)
{
    enum status status;

    if (is_counted(sql, expect))
        return send_counted(session, sql, params, nparams, expect, item, diag);
    status = postgres_param_encode(&session->params, params, nparams,
                                   sql->origin, diag);
    if (status != STATUS_OK)
        return status;
    if (sql->origin != DB_HOST && nparams > 0)
        postgres_guard_untyped(sql->text, session->params.types, nparams);
    if (sql->origin == DB_SCRIPT_READ)
        return send_reading(session, sql, item, diag);
    return postgres_cache_send(session, sql, &session->params,
                               sql->origin == DB_HOST, item, diag);
}

/* What was sent is answered in any case, so that the connection stays in
 * step; the failure to send the rest is told when nothing failed before. */
static enum status finish(struct db_session *session, enum status sent,
                          PGresult **result, struct diag *diag)
{
    struct diag unsent;
    enum status status;

    if (sent == STATUS_LOST) {
        postgres_connect_close(session);
        return sent;
    }
    if (sent == STATUS_OK)
        return postgres_pipe_finish(session, result, NULL, diag);
    unsent = *diag;
    status = postgres_pipe_finish(session, NULL, NULL, diag);
    if (status != STATUS_OK)
        return status;
    *diag = unsent;
    return sent;
}

static enum status run_one(struct db_session *session, const struct db_sql *sql,
                           const struct db_value *params, size_t nparams,
                           PGresult **result, struct diag *diag)
{
    enum status status = postgres_pipe_start(session, diag);

    *result = NULL;
    if (status == STATUS_OK)
        status = postgres_statement_send(session, sql, params, nparams,
                                         DB_ANY_ROWS, PG_NO_ITEM, diag);
    else
        return status;
    return finish(session, status, result, diag);
}

static int64_t touched(PGresult *result)
{
    const char *status = PQcmdStatus(result);

    if (strncmp(status, "SELECT", 6) == 0)
        return 0;
    return strtoll(PQcmdTuples(result), NULL, 10);
}

enum status postgres_statement_execute(struct db_session *session,
                                       const struct db_sql *sql,
                                       const struct db_value *params,
                                       size_t nparams, int64_t *affected,
                                       struct diag *diag)
{
    PGresult *result;
    enum status status;

    if (affected != NULL)
        *affected = 0;
    status = run_one(session, sql, params, nparams, &result, diag);
    if (status == STATUS_OK && affected != NULL)
        *affected = touched(result);
    PQclear(result);
    return status;
}

enum status postgres_statement_ask(struct db_session *session, const char *text,
                                   const struct db_value *params,
                                   size_t nparams, PGresult **result,
                                   struct diag *diag)
{
    struct db_sql sql = db_sql_make(text_of(text), DB_HOST);

    return run_one(session, &sql, params, nparams, result, diag);
}

static enum status stream(struct db_session *session, const struct db_sql *sql,
                          const struct db_value *params, size_t nparams,
                          struct db_rows **rows, struct diag *diag)
{
    enum status status = postgres_pipe_start(session, diag);

    if (status != STATUS_OK)
        return status;
    status = postgres_statement_send(session, sql, params, nparams, DB_ANY_ROWS,
                                     PG_NO_ITEM, diag);
    if (status != STATUS_OK)
        return finish(session, status, NULL, diag);
    status = postgres_stream_start(session, diag);
    if (status == STATUS_OK)
        *rows = postgres_rows_stream(session);
    return status;
}

enum status postgres_rows_query(struct db_session *session,
                                const struct db_sql *sql,
                                const struct db_value *params, size_t nparams,
                                struct db_rows **rows, struct diag *diag)
{
    PGresult *result = postgres_ahead_take(session, sql, params, nparams);
    enum status status = STATUS_OK;

    if (result == NULL && sql->large)
        return stream(session, sql, params, nparams, rows, diag);
    if (result == NULL)
        status = run_one(session, sql, params, nparams, &result, diag);
    if (status == STATUS_OK)
        *rows = postgres_rows_new(result);
    return status;
}

/* --- scripts ------------------------------------------------------------- */

static size_t line_of(struct text script, const char *at)
{
    size_t line = 1;

    for (const char *c = script.data; c < at; c++)
        line += *c == '\n';
    return line;
}

/* Where the statements of a script begin, to name the line of a bad one. */
struct parts {
    const char **starts;
    size_t count;
    size_t capacity;
};

static void add_part(struct parts *parts, const char *at)
{
    if (parts->count == parts->capacity) {
        parts->capacity = parts->capacity == 0 ? 16 : 2 * parts->capacity;
        parts->starts = mem_grow(parts->starts, parts->capacity,
                                 sizeof(*parts->starts));
    }
    parts->starts[parts->count++] = at;
}

static enum status send_part(struct db_session *session, struct text part,
                             enum db_origin origin, size_t item,
                             struct diag *diag)
{
    enum status status = STATUS_OK;
    int sent_ok;

    if (origin != DB_HOST)
        status = postgres_guard_check_script(part, session->host_tables, diag);
    if (status != STATUS_OK)
        return status;
    buffer_clear(&session->text);
    buffer_append_text(&session->text, part);
    sent_ok = PQsendQueryParams(session->conn, session->text.data, 0, NULL,
                                NULL, NULL, NULL, 0);
    return postgres_pipe_note(session, PG_SENT_STATEMENT, -1, item, sent_ok,
                              diag);
}

static enum status send_parts(struct db_session *session, struct text script,
                              enum db_origin origin, struct parts *parts,
                              struct diag *diag)
{
    const char *end = script.data + script.len;
    const char *at = script.data;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && (at = postgres_guard_skip(at, end)) < end) {
        const char *tail = postgres_guard_end(at, end);

        add_part(parts, at);
        status = send_part(session, (struct text){at, (size_t)(tail - at)},
                           origin, parts->count - 1, diag);
        at = tail;
    }
    return status;
}

static enum status run_script(struct db_session *session, struct text script,
                              enum db_origin origin, struct parts *parts,
                              size_t *failed, struct diag *diag)
{
    bool own = !session->in_transaction; /* all of it or nothing */
    enum status status = postgres_pipe_start(session, diag);
    enum status answered;
    struct diag unsent;

    if (status != STATUS_OK)
        return status;
    if (own)
        status = postgres_pipe_text(session, PG_SENT_SETTING, "BEGIN", diag);
    if (status == STATUS_OK)
        status = postgres_pipe_text(session, PG_SENT_SETTING, SCRIPT_LOCK,
                                    diag);
    if (status == STATUS_OK)
        status = send_parts(session, script, origin, parts, diag);
    if (status == STATUS_OK && own)
        status = postgres_pipe_text(session, PG_SENT_COMMIT, "COMMIT", diag);
    if (status == STATUS_LOST) {
        postgres_connect_close(session);
        return status;
    }
    if (status != STATUS_OK)
        *failed = parts->count - 1;
    unsent = *diag;
    answered = postgres_pipe_finish(session, NULL, failed, diag);
    if (answered == STATUS_OK && status != STATUS_OK)
        *diag = unsent;
    return answered != STATUS_OK ? answered : status;
}

/* The script's own transaction ends with its failure. */
static void end_own(struct db_session *session)
{
    if (session->conn == NULL ||
        PQtransactionStatus(session->conn) == PQTRANS_IDLE ||
        postgres_pipe_start(session, NULL) != STATUS_OK ||
        postgres_pipe_text(session, PG_SENT_SETTING, "ROLLBACK", NULL) !=
            STATUS_OK)
        return;
    (void)!postgres_pipe_finish(session, NULL, NULL, NULL);
}

enum status postgres_statement_script(struct db_session *session,
                                      struct text script, enum db_origin origin,
                                      struct diag *diag)
{
    struct parts parts = {.count = 0};
    size_t failed = SIZE_MAX;
    enum status status;

    if (script.len > INT32_MAX / 2 ||
        (script.len > 0 && memchr(script.data, '\0', script.len) != NULL))
        return diag_set(diag, STATUS_PERMANENT,
                        "the script is too long or holds a NUL byte");
    postgres_columns_forget(session);
    status = run_script(session, script, origin, &parts, &failed, diag);
    if (status != STATUS_OK && failed < parts.count)
        (void)diag_wrap(diag, "line %zu of the script",
                        line_of(script, parts.starts[failed]));
    if (status != STATUS_OK && !session->in_transaction)
        end_own(session);
    mem_free(parts.starts);
    return status;
}
