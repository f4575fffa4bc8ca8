#include "db/mysql_session.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>

/* --- session -------------------------------------------------------------- */

static void disconnect(struct db_session *session)
{
    mysql_connect_close(session);
    mysql_url_free(&session->url);
    arena_free(&session->params);
    buffer_free(&session->text);
    mem_free(session);
}

static enum status connect_server(const struct db_options *options,
                                  struct db_session **session,
                                  struct diag *diag)
{
    struct db_session *made = mem_alloc(sizeof(*made));
    enum status status;

    made->read_only = options->read_only;
    made->busy_timeout = options->busy_timeout;
    made->silence = options->silence;
    made->host_tables = options->host_tables;
    status = mysql_url_parse(options->url, &made->url, diag);
    if (status == STATUS_OK)
        status = mysql_connect_open(made, diag);
    if (status != STATUS_OK) {
        disconnect(made);
        return status;
    }
    *session = made;
    return STATUS_OK;
}

static enum status reconnect(struct db_session *session, struct diag *diag)
{
    mysql_connect_close(session);
    return mysql_connect_open(session, diag);
}

static enum status check_usable(struct db_session *session, struct diag *diag)
{
    if (!session->broken)
        return STATUS_OK;
    return diag_set(diag, STATUS_LOST,
                    "the connection to the database is lost");
}

/* --- transactions --------------------------------------------------------- */

static void begun(struct db_session *session)
{
    session->in_transaction = true;
    session->schema = false;
    session->gone = false;
}

/* Outside of a transaction a statement is one by itself. */
static enum status end_alone(struct db_session *session, enum status status,
                             struct diag *diag)
{
    struct diag unseen;

    if (session->in_transaction || session->broken)
        return status;
    if (session->touched && status == STATUS_OK)
        status = mysql_statement_run(session, "COMMIT", diag);
    else if (session->touched &&
             mysql_statement_run(session, "ROLLBACK", &unseen) != STATUS_OK)
        session->broken = true;
    session->touched = false;
    return status;
}

/* Without autocommit the first statement begins the transaction. One that
 * reads names its view; both settings travel together. */
static enum status begin(struct db_session *session, bool write,
                         struct diag *diag)
{
    enum status status = check_usable(session, diag);

    if (status == STATUS_OK) /* a result from before may still be open */
        status = end_alone(session, status, diag);
    if (status == STATUS_OK && !write) {
        status = mysql_statement_run_two(
            session, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", diag);
        session->touched = true;
    }
    if (status == STATUS_OK)
        begun(session);
    return status;
}

static enum status end_transaction(struct db_session *session, const char *how,
                                   struct diag *diag)
{
    enum status status = STATUS_OK;

    mysql_rows_end_all(session);
    if (session->touched)
        status = mysql_statement_run(session, how, diag);
    session->touched = false;
    return status;
}

static enum status run_query_int(struct db_session *session, const char *text,
                                 int64_t *value, struct diag *diag)
{
    struct db_sql sql = db_sql_make(text_of(text), DB_HOST);
    struct db_rows *rows;
    enum status status;
    bool more;

    *value = 0;
    status = mysql_rows_query(session, &sql, NULL, 0, &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = mysql_rows_next(rows, &more, diag);
    if (status == STATUS_OK && more && mysql_value_type(rows, 0) != DB_NULL)
        *value = mysql_value_int64(rows, 0);
    mysql_rows_close(rows);
    return status;
}

/* DDL commits by itself, so a transaction cannot keep two hosts apart that
 * create tables; a lock with the database's name does. */
static enum status begin_schema(struct db_session *session, struct diag *diag)
{
    int64_t seconds = session->busy_timeout / CLOCK_SECOND;
    int64_t got = 0;
    char text[128];
    enum status status = check_usable(session, diag);

    if (status != STATUS_OK)
        return status;
    (void)snprintf(text, sizeof(text),
                   "SELECT GET_LOCK(CONCAT('moontide:', MD5(DATABASE())), %d)",
                   seconds < 1 ? 1 : (int)seconds);
    status = run_query_int(session, text, &got, diag);
    if (status != STATUS_OK)
        return status;
    if (got != 1)
        return diag_set(diag, STATUS_CONFLICT,
                        "another program is creating tables in this database; "
                        "it was waited for %.1f seconds",
                        (double)session->busy_timeout / CLOCK_SECOND);
    begun(session);
    session->schema = true;
    return STATUS_OK;
}

static bool end_schema(struct db_session *session)
{
    bool was = session->schema;

    session->schema = false;
    return !was || mysql_statement_run(session, "DO RELEASE_ALL_LOCKS()",
                                       NULL) == STATUS_OK;
}

static bool roll_back(struct db_session *session)
{
    enum status status = STATUS_LOST;

    session->in_transaction = false;
    session->gone = false;
    if (!session->broken)
        status = end_transaction(session, "ROLLBACK", NULL);
    if (session->broken || status != STATUS_OK || !end_schema(session))
        session->broken = true;
    session->schema = false;
    return !session->broken;
}

/* Whatever the answer, the transaction is over; only some of the answers say
 * for certain that nothing was kept. */
static enum status commit(struct db_session *session, struct diag *diag)
{
    enum status status;

    if (session->gone) {
        (void)roll_back(session);
        return diag_set(diag, STATUS_CONFLICT,
                        "the server rolled the transaction back before its "
                        "end; nothing of it was kept");
    }
    status = end_transaction(session, "COMMIT", diag);
    if (status != STATUS_OK && status != STATUS_CONFLICT) {
        session->broken = true;
        if (diag != NULL)
            diag->status = STATUS_LOST;
        return STATUS_LOST;
    }
    if (status == STATUS_OK) {
        session->in_transaction = false;
        /* lost behind the answer to COMMIT: the next call will see */
        if (!end_schema(session))
            session->broken = true;
    }
    return status;
}

static enum status run(struct db_session *session,
                       const struct db_queued *queue, size_t count,
                       enum db_end end, size_t *failed, struct diag *diag)
{
    enum status status = mysql_queue_run(session, queue, count, failed, diag);

    if (status != STATUS_OK || end == DB_END_NONE)
        return status;
    return commit(session, diag);
}

static enum status execute(struct db_session *session, const struct db_sql *sql,
                           const struct db_value *params, size_t nparams,
                           int64_t *affected, struct diag *diag)
{
    enum status status = check_usable(session, diag);

    if (status == STATUS_OK)
        status = mysql_statement_execute(session, sql, params, nparams,
                                         affected, diag);
    return end_alone(session, status, diag);
}

static enum status query(struct db_session *session, const struct db_sql *sql,
                         const struct db_value *params, size_t nparams,
                         struct db_rows **rows, struct diag *diag)
{
    enum status status = check_usable(session, diag);

    if (status != STATUS_OK)
        return status;
    status = mysql_rows_query(session, sql, params, nparams, rows, diag);
    /* rows are on their way: the end comes when the result is closed */
    if (status == STATUS_OK && session->streaming != NULL &&
        !mysql_statement_writes(sql->text))
        return STATUS_OK;
    if (end_alone(session, status, diag) == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_OK) {
        mysql_rows_close(*rows);
        *rows = NULL;
        return STATUS_LOST;
    }
    return status;
}

static void close_rows(struct db_rows *rows)
{
    struct db_session *session = ((struct mysql_rows *)rows)->session;

    mysql_rows_close(rows);
    (void)end_alone(session, STATUS_OK, NULL);
}

static enum status lookup(struct db_session *session,
                          const struct db_table *table, const struct text *keys,
                          size_t nkeys, db_lookup_fn fn, void *arg,
                          struct diag *diag)
{
    enum status status = check_usable(session, diag);

    if (status == STATUS_OK)
        status = mysql_lookup(session, table, keys, nkeys, fn, arg, diag);
    return end_alone(session, status, diag);
}

/* Each DDL statement would commit what the transaction did before it. */
static enum status check_ddl(struct db_session *session, struct diag *diag)
{
    if (!session->in_transaction || session->schema)
        return check_usable(session, diag);
    return diag_set(diag, STATUS_PERMANENT,
                    "tables cannot be created inside a transaction: this "
                    "database would commit it");
}

static enum status script(struct db_session *session, struct text text,
                          enum db_origin origin, struct diag *diag)
{
    enum status status = check_ddl(session, diag);

    if (status == STATUS_OK)
        status = mysql_statement_script(session, text, origin, diag);
    return end_alone(session, status, diag);
}

static enum status create_table(struct db_session *session,
                                const struct db_shape *shape, struct diag *diag)
{
    enum status status = check_ddl(session, diag);

    if (status == STATUS_OK)
        status = mysql_shape_create(session, shape, diag);
    return end_alone(session, status, diag);
}

static enum status describe_table(struct db_session *session, const char *name,
                                  struct arena *arena, struct db_shape *shape,
                                  bool *exists, struct diag *diag)
{
    enum status status = check_usable(session, diag);

    if (status == STATUS_OK)
        status = mysql_shape_describe(session, name, arena, shape, exists,
                                      diag);
    return end_alone(session, status, diag);
}

static enum status run_numbered(struct db_session *session, const char *what,
                                int depth, struct diag *diag)
{
    char text[64];

    if (session->gone)
        return diag_set(diag, STATUS_CONFLICT,
                        "the server rolled the whole transaction back");
    if (session->broken)
        return check_usable(session, diag);
    (void)snprintf(text, sizeof(text), "%s moontide_%d", what, depth);
    session->touched = true;
    return mysql_statement_run(session, text, diag);
}

static enum status savepoint(struct db_session *session, int depth,
                             struct diag *diag)
{
    return run_numbered(session, "SAVEPOINT", depth, diag);
}

static enum status release(struct db_session *session, int depth,
                           struct diag *diag)
{
    return run_numbered(session, "RELEASE SAVEPOINT", depth, diag);
}

/* The savepoint itself goes, too: the next one of its depth replaces it. */
static enum status rollback_to(struct db_session *session, int depth,
                               struct diag *diag)
{
    return run_numbered(session, "ROLLBACK TO SAVEPOINT", depth, diag);
}

static enum status now(struct db_session *session, int64_t *now_us,
                       struct diag *diag)
{
    struct db_sql sql = db_sql_make(
        TEXT_LITERAL("SELECT CAST(UTC_TIMESTAMP(6) AS DATETIME(6))"), DB_HOST);
    struct db_rows *rows;
    enum status status = check_usable(session, diag);
    bool touched = session->touched;
    bool more;

    if (status == STATUS_OK)
        status = mysql_rows_query(session, &sql, NULL, 0, &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = mysql_rows_next(rows, &more, diag);
    if (status == STATUS_OK)
        *now_us = mysql_value_timestamp(rows, 0);
    mysql_rows_close(rows);
    session->touched = touched; /* the clock is no table */
    return status;
}

static int64_t round_trips(const struct db_session *session)
{
    return session->round_trips;
}

static void set_deadline(struct db_session *session, int64_t at_us)
{
    session->deadline = at_us;
}

const struct db_driver db_mysql_driver = {
    .name = "mysql",
    .can = DB_CAN_MANY_HOSTS,
    .accepts = mysql_url_accepts,
    .scratch = mysql_scratch,
    .connect = connect_server,
    .disconnect = disconnect,
    .reconnect = reconnect,
    .begin = begin,
    .begin_schema = begin_schema,
    .run = run,
    .rollback = roll_back,
    .savepoint = savepoint,
    .rollback_to = rollback_to,
    .release = release,
    .execute = execute,
    .query = query,
    .lookup = lookup,
    .script = script,
    .now = now,
    .round_trips = round_trips,
    .deadline = set_deadline,
    .create_table = create_table,
    .describe_table = describe_table,
    .print_name = mysql_shape_name,
    .print_table = mysql_shape_print,
    .column_fits = mysql_shape_fits,
    .next = mysql_rows_next,
    .rows_close = close_rows,
    .columns = mysql_rows_columns,
    .column_name = mysql_rows_column_name,
    .column_type = mysql_value_type,
    .get_int64 = mysql_value_int64,
    .get_double = mysql_value_double,
    .get_bool = mysql_value_bool,
    .get_text = mysql_value_text,
    .get_timestamp = mysql_value_timestamp,
    .get_uuid = mysql_value_uuid,
};
