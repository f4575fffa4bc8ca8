#include "db/mysql_cell.h"

#include "base/memory.h"

#define SHOWN_STATEMENT 200 /* bytes of a statement in an error */

static void statement_free(struct mysql_statement *statement)
{
    mysql_cell_free_all(statement);
    (void)mysql_stmt_close(statement->handle);
    mem_free(statement->marks.numbers);
    mem_free((char *)statement->text.data);
    mem_free(statement);
}

/* Index of the statement, -1 when there is none. */
static int find(const struct db_session *session, const struct db_sql *sql)
{
    for (int i = 0; i < MYSQL_CACHE_MAX; i++) {
        const struct mysql_statement *at = session->cache[i];

        if (at != NULL && at->hash == sql->hash && at->origin == sql->origin &&
            text_equal(at->text, sql->text))
            return i;
    }
    return -1;
}

struct mysql_statement *mysql_cache_find(struct db_session *session,
                                         const struct db_sql *sql)
{
    int i = find(session, sql);
    struct mysql_statement *found;

    mysql_rows_settle(session); /* whoever takes a statement runs it */
    if (i < 0 || session->cache[i]->in_use)
        return NULL;
    found = session->cache[i];
    found->in_use = true;
    found->used = ++session->uses;
    return found;
}

/* A free place, or that of the statement that was not used for longest. One in
 * use is freed by its user. */
static void add(struct db_session *session, struct mysql_statement *statement)
{
    int place = 0;

    for (int i = 0; i < MYSQL_CACHE_MAX; i++) {
        if (session->cache[i] == NULL) {
            place = i;
            break;
        }
        if (session->cache[i]->used < session->cache[place]->used)
            place = i;
    }
    if (session->cache[place] != NULL) {
        session->cache[place]->cached = false;
        if (!session->cache[place]->in_use)
            statement_free(session->cache[place]);
    }
    session->cache[place] = statement;
    statement->cached = true;
}

static enum status prepare_error(struct db_session *session, MYSQL_STMT *handle,
                                 struct text sql, struct diag *diag)
{
    char shown[SHOWN_STATEMENT + 1];
    enum status status = mysql_fault_statement(session, handle, diag);

    if (status != STATUS_PERMANENT || diag == NULL)
        return status;
    text_clean(sql, shown, sizeof(shown));
    return diag_append(diag, " in: %s%s", shown,
                       sql.len > SHOWN_STATEMENT ? "..." : "");
}

/* Of RETURNING the server tells only when it runs. */
static bool has_returning(struct text sql)
{
    struct mysql_scan scan = {sql.data, sql.data + sql.len};
    struct mysql_token token;

    while ((token = mysql_scan_next(&scan)).kind != MYSQL_TOKEN_END) {
        if (mysql_scan_is(&token, "RETURNING"))
            return true;
    }
    return false;
}

static enum status prepare(struct db_session *session, const struct db_sql *sql,
                           struct mysql_statement *made, struct diag *diag)
{
    struct buffer plain = BUFFER_EMPTY;
    my_bool no = 0;
    enum status status = STATUS_OK;

    made->handle = mysql_stmt_init(session->handle);
    if (made->handle == NULL)
        return diag_set(diag, STATUS_UNAVAILABLE, "out of memory");
    (void)mysql_stmt_attr_set(made->handle, STMT_ATTR_UPDATE_MAX_LENGTH, &no);
    mysql_scan_marks(sql->text, &plain, &made->marks);
    session->round_trips++;
    if (mysql_stmt_prepare(made->handle, plain.data, plain.len) != 0)
        status = prepare_error(session, made->handle, sql->text, diag);
    else if (mysql_stmt_param_count(made->handle) != made->marks.count)
        status = diag_set(diag, STATUS_PERMANENT,
                          "the server finds %lu parameters in a statement "
                          "where the host finds %zu",
                          mysql_stmt_param_count(made->handle),
                          made->marks.count);
    made->gives_rows = mysql_stmt_field_count(made->handle) > 0 ||
                       has_returning(sql->text);
    buffer_free(&plain);
    return status;
}

enum status mysql_cache_take(struct db_session *session,
                             const struct db_sql *sql,
                             struct mysql_statement **statement,
                             struct diag *diag)
{
    struct mysql_statement *found = mysql_cache_find(session, sql);
    enum status status;

    *statement = found;
    if (found != NULL)
        return STATUS_OK;
    if (sql->text.len == 0 ||
        memchr(sql->text.data, '\0', sql->text.len) != NULL)
        return diag_set(diag, STATUS_PERMANENT,
                        "a statement is empty or holds a NUL byte");
    status = mysql_guard(sql->text, sql->origin, false, session->host_tables,
                         diag);
    if (status != STATUS_OK)
        return status;
    found = mem_alloc(sizeof(*found));
    found->text = (struct text){mem_copy_text(sql->text.data, sql->text.len),
                                sql->text.len};
    found->hash = sql->hash;
    found->origin = sql->origin;
    found->in_use = true;
    found->used = ++session->uses;
    status = prepare(session, sql, found, diag);
    if (status != STATUS_OK) {
        statement_free(found);
        return status;
    }
    if (find(session, sql) < 0) /* else its twin is in use and stays */
        add(session, found);
    *statement = found;
    return STATUS_OK;
}

void mysql_cache_give(struct db_session *session,
                      struct mysql_statement *statement)
{
    (void)session;
    statement->in_use = false;
    (void)mysql_stmt_free_result(statement->handle);
    if (!statement->cached)
        statement_free(statement);
}

void mysql_cache_drop(struct db_session *session,
                      struct mysql_statement *statement)
{
    for (int i = 0; i < MYSQL_CACHE_MAX; i++) {
        if (session->cache[i] == statement)
            session->cache[i] = NULL;
    }
    statement->cached = false;
    mysql_cache_give(session, statement);
}

void mysql_cache_clear(struct db_session *session)
{
    for (int i = 0; i < MYSQL_CACHE_MAX; i++) {
        struct mysql_statement *statement = session->cache[i];

        session->cache[i] = NULL;
        if (statement == NULL)
            continue;
        statement->cached = false;
        if (!statement->in_use)
            statement_free(statement);
    }
}
