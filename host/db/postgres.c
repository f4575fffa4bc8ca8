#include "db/postgres.h"

#include "base/memory.h"
#include "db/listener_kind.h"

/* --- session ------------------------------------------------------------- */

static void disconnect(struct db_session *session)
{
    postgres_connect_close(session);
    postgres_cache_clear(session);
    postgres_param_free(&session->params);
    buffer_free(&session->text);
    buffer_free(&session->settings);
    mem_free(session->commands);
    mem_free(session->url);
    mem_free(session);
}

static enum status connect_server(const struct db_options *options,
                                  struct db_session **session,
                                  struct diag *diag)
{
    struct db_session *made = mem_alloc(sizeof(*made));
    enum status status;

    made->url = mem_copy_text(options->url, strlen(options->url));
    made->read_only = options->read_only;
    made->prepare = !options->no_prepare;
    made->busy_timeout = options->busy_timeout;
    made->silence = options->silence;
    made->host_tables = options->host_tables;
    status = postgres_connect_open(made, diag);
    if (status != STATUS_OK) {
        disconnect(made);
        return status;
    }
    *session = made;
    return STATUS_OK;
}

static enum status reconnect(struct db_session *session, struct diag *diag)
{
    postgres_connect_close(session);
    session->in_transaction = false;
    return postgres_connect_open(session, diag);
}

static void set_deadline(struct db_session *session, int64_t at_us)
{
    session->deadline = at_us;
}

static int64_t round_trips(const struct db_session *session)
{
    return session->round_trips;
}

/* --- transactions -------------------------------------------------------- */

static enum status begin(struct db_session *session, bool write,
                         struct diag *diag)
{
    if (session->conn == NULL || PQstatus(session->conn) == CONNECTION_BAD)
        return diag_set(diag, STATUS_LOST,
                        "the connection to the database is lost");
    session->in_transaction = true;
    session->writes = write && !session->read_only;
    session->begin_pending = true;
    session->nsteps = 0;
    return STATUS_OK;
}

static void forget_transaction(struct db_session *session)
{
    session->in_transaction = false;
    session->begin_pending = false;
    session->nsteps = 0;
    postgres_ahead_withdraw(session);
}

static bool roll_back(struct db_session *session)
{
    enum status status;

    forget_transaction(session);
    if (session->in_flight) /* of this transaction nothing was sent */
        return true;
    session->deadline = 0; /* it must not be interrupted */
    if (session->conn == NULL || PQstatus(session->conn) == CONNECTION_BAD)
        return false;
    if (PQtransactionStatus(session->conn) == PQTRANS_IDLE)
        return true;
    status = postgres_pipe_start(session, NULL);
    if (status == STATUS_OK)
        status = postgres_pipe_text(session, PG_SENT_SETTING, "ROLLBACK", NULL);
    if (status == STATUS_OK)
        status = postgres_pipe_finish(session, NULL, NULL, NULL);
    return status == STATUS_OK;
}

static enum status run(struct db_session *session,
                       const struct db_queued *queue, size_t count,
                       enum db_end end, size_t *failed, struct diag *diag)
{
    enum status status = STATUS_OK;

    /* nothing was sent, so there is nothing to commit */
    if (count > 0 || !session->begin_pending)
        status = postgres_bulk_run(session, queue, count, end, failed, diag);
    if (end != DB_END_NONE && status == STATUS_OK)
        forget_transaction(session);
    return status;
}

/* A pooler may give the two parts of such a pipeline to different servers. */
static bool leaves(const struct db_session *session)
{
    return session->prepare;
}

static enum status answer(struct db_session *session, size_t *failed,
                          struct diag *diag)
{
    enum status status = STATUS_OK;

    if (session->conn == NULL)
        status = diag_set(diag, STATUS_LOST,
                          "the connection to the database is lost");
    else if (session->in_flight)
        status = postgres_pipe_answer(session, failed, diag);
    /* somebody may have altered a table */
    if (status == STATUS_PERMANENT)
        postgres_columns_forget(session);
    return status;
}

static struct db_rows *announced(struct db_session *session,
                                 const struct db_sql *sql,
                                 const struct db_value *params, size_t nparams)
{
    PGresult *result = postgres_ahead_take(session, sql, params, nparams);

    if (result != NULL)
        return postgres_rows_new(result);
    if (session->in_flight && !session->streaming &&
        postgres_ahead_comes(session, sql, params, nparams) &&
        postgres_stream_start_ahead(session))
        return postgres_rows_stream(session);
    return NULL;
}

/* Nobody waits for a savepoint: it goes out in front of what comes next. */
static enum status add_step(struct db_session *session, const char *what,
                            int depth, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (session->nsteps == POSTGRES_STEPS_MAX) {
        status = postgres_pipe_start(session, diag);
        if (status == STATUS_OK)
            status = postgres_pipe_finish(session, NULL, NULL, diag);
    }
    if (session->conn == NULL)
        return diag_set(diag, STATUS_LOST,
                        "the connection to the database is lost");
    session->steps[session->nsteps++] = (struct postgres_step){what, depth};
    return status;
}

static enum status savepoint(struct db_session *session, int depth,
                             struct diag *diag)
{
    return add_step(session, "SAVEPOINT", depth, diag);
}

static enum status release(struct db_session *session, int depth,
                           struct diag *diag)
{
    return add_step(session, "RELEASE", depth, diag);
}

static enum status rollback_to(struct db_session *session, int depth,
                               struct diag *diag)
{
    enum status status = add_step(session, "ROLLBACK TO", depth, diag);

    return status == STATUS_OK ? release(session, depth, diag) : status;
}

static enum status now(struct db_session *session, int64_t *now_us,
                       struct diag *diag)
{
    const struct db_sql sql = db_sql_make(
        TEXT_LITERAL("SELECT clock_timestamp()"), DB_HOST);
    struct db_rows *rows;
    bool more;
    enum status status = postgres_rows_query(session, &sql, NULL, 0, &rows,
                                             diag);

    if (status != STATUS_OK)
        return status;
    status = postgres_rows_next(rows, &more, diag);
    if (status == STATUS_OK && more)
        *now_us = postgres_rows_get_timestamp(rows, 0);
    postgres_rows_close(rows);
    return status;
}

const struct db_driver db_postgres_driver = {
    .name = "postgres",
    .can = DB_CAN_SEQUENCE | DB_CAN_MANY_HOSTS | DB_CAN_NOTIFY | DB_CAN_MERGE |
           DB_SENDS_ALL | DB_CAN_LEAVE | DB_SEES_EARLIER,
    .accepts = postgres_connect_accepts,
    .scratch = postgres_scratch,
    .connect = connect_server,
    .disconnect = disconnect,
    .reconnect = reconnect,
    .listener = &postgres_listener,
    .begin = begin,
    .run = run,
    .leaves = leaves,
    .answer = answer,
    .announced = announced,
    .rollback = roll_back,
    .savepoint = savepoint,
    .rollback_to = rollback_to,
    .release = release,
    .execute = postgres_statement_execute,
    .query = postgres_rows_query,
    .announce = postgres_ahead_announce,
    .withdraw = postgres_ahead_clear,
    .lookup = postgres_lookup_rows,
    .lookup_behind = postgres_lookup_behind,
    .script = postgres_statement_script,
    .now = now,
    .round_trips = round_trips,
    .deadline = set_deadline,
    .create_table = postgres_shape_create,
    .describe_table = postgres_shape_describe,
    .print_name = postgres_shape_name,
    .print_table = postgres_shape_print,
    .column_fits = postgres_shape_fits,
    .next = postgres_rows_next,
    .rows_close = postgres_rows_close,
    .columns = postgres_rows_columns,
    .column_name = postgres_rows_column_name,
    .column_type = postgres_rows_column_type,
    .get_int64 = postgres_rows_get_int64,
    .get_double = postgres_rows_get_double,
    .get_bool = postgres_rows_get_bool,
    .get_text = postgres_rows_get_text,
    .get_timestamp = postgres_rows_get_timestamp,
    .get_uuid = postgres_rows_get_uuid,
};
