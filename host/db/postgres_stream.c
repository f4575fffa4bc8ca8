#include "db/postgres.h"

/* The rows of command `nread` come one by one from now on. */
static bool begin(struct db_session *session)
{
    session->streaming = PQsetSingleRowMode(session->conn) == 1;
    session->streams++;
    return session->streaming;
}

enum status postgres_stream_start(struct db_session *session, struct diag *diag)
{
    bool failed = false;
    enum status status = postgres_pipe_end(session, diag);

    if (status == STATUS_OK)
        status = postgres_pipe_read_to(session, session->ncommands - 1, &failed,
                                       diag);
    if (status == STATUS_OK && !failed && begin(session))
        return STATUS_OK;
    if (status == STATUS_OK && failed) {
        struct diag why = *diag;

        status = postgres_pipe_read_to(session, session->ncommands, &failed,
                                       diag);
        if (status == STATUS_OK)
            status = postgres_pipe_read_sync(session, diag);
        if (status == STATUS_OK) {
            *diag = why;
            return why.status;
        }
    }
    postgres_connect_close(session);
    return STATUS_LOST;
}

/* What fails in front of the rows is answered to its end, and there are none.
 * False when the connection is no good any more. */
static bool start_at(struct db_session *session, size_t at)
{
    bool failed = false;
    struct diag diag;

    if (postgres_pipe_read_to(session, at, &failed, &diag) != STATUS_OK)
        return false;
    if (!failed)
        return begin(session);
    return postgres_pipe_read_to(session, at + 2, &failed, &diag) == STATUS_OK;
}

bool postgres_stream_start_ahead(struct db_session *session)
{
    size_t at = session->nread;

    while (at < session->ncommands &&
           session->commands[at].sent != PG_SENT_AHEAD)
        at++;
    if (at == session->ncommands || !start_at(session, at))
        postgres_connect_close(session);
    return session->streaming;
}

/* Behind the last row: the end of the command, and of its part. */
static enum status end_of_part(struct db_session *session, struct diag *diag)
{
    PGresult *result = NULL;
    enum status status = postgres_pipe_result(session, &result, diag);

    if (status == STATUS_OK && result != NULL)
        status = postgres_error_lost(session, diag);
    PQclear(result);
    session->streaming = false;
    session->nread++;
    if (session->nread < session->ncommands) /* the end of a part */
        session->nread++;
    return status == STATUS_OK ? postgres_pipe_read_sync(session, diag)
                               : status;
}

static enum status stop(struct db_session *session, enum status status,
                        struct diag *diag)
{
    struct diag unread;

    if (end_of_part(session, status == STATUS_OK ? diag : &unread) ==
            STATUS_OK &&
        status != STATUS_LOST)
        return status;
    postgres_connect_close(session);
    if (status != STATUS_OK)
        diag->status = STATUS_LOST;
    return STATUS_LOST;
}

enum status postgres_stream_next(struct db_session *session, PGresult **row,
                                 struct diag *diag)
{
    const struct postgres_command *command = &session->commands[session->nread];
    PGresult *result = NULL;
    enum status status = postgres_pipe_result(session, &result, diag);

    *row = NULL;
    if (status == STATUS_OK && result == NULL)
        status = postgres_error_lost(session, diag);
    if (status != STATUS_OK) {
        PQclear(result);
        postgres_connect_close(session);
        return STATUS_LOST;
    }
    if (PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
        *row = result;
        return STATUS_OK;
    }
    status = postgres_pipe_judge(session, command, result, diag);
    PQclear(result);
    return stop(session, status, diag);
}

void postgres_stream_drain(struct db_session *session)
{
    struct diag diag;

    while (session->streaming) {
        PGresult *row;

        if (postgres_stream_next(session, &row, &diag) != STATUS_OK)
            return;
        PQclear(row);
    }
}
