#include "db/postgres.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>

/* --- answers ------------------------------------------------------------- */

static enum status lost(struct db_session *session, struct diag *diag)
{
    return postgres_error_lost(session, diag);
}

/* Sends what libpq holds; reads meanwhile, so that two full buffers never
 * wait for each other. */
static enum status flush(struct db_session *session, struct diag *diag)
{
    int left;

    while ((left = PQflush(session->conn)) == 1) {
        enum status status = postgres_wait(session, true, diag);

        if (status != STATUS_OK)
            return status;
        if (PQconsumeInput(session->conn) == 0)
            return lost(session, diag);
    }
    return left == 0 ? STATUS_OK : lost(session, diag);
}

/* NULL at the end of a command's results; a lost connection is a status. */
enum status postgres_pipe_result(struct db_session *session, PGresult **result,
                                 struct diag *diag)
{
    while (PQisBusy(session->conn)) {
        enum status status = postgres_wait(session, false, diag);

        if (status != STATUS_OK)
            return status;
        if (PQconsumeInput(session->conn) == 0 &&
            PQstatus(session->conn) == CONNECTION_BAD)
            break; /* what the server said last may still be there */
    }
    *result = PQgetResult(session->conn);
    return STATUS_OK;
}

/* --- sending ------------------------------------------------------------- */

enum status postgres_pipe_note(struct db_session *session,
                               enum postgres_sent sent, int place, size_t item,
                               int sent_ok, struct diag *diag)
{
    if (sent_ok == 0)
        return lost(session, diag);
    if (session->ncommands == session->commands_capacity) {
        session->commands_capacity = session->commands_capacity == 0
                                         ? 64
                                         : 2 * session->ncommands;
        session->commands = mem_grow(session->commands,
                                     session->commands_capacity,
                                     sizeof(*session->commands));
    }
    session->commands[session->ncommands++] = (struct postgres_command){
        .sent = sent, .place = place, .item = item, .origin = session->origin};
    return STATUS_OK;
}

enum status postgres_pipe_text(struct db_session *session,
                               enum postgres_sent sent, const char *text,
                               struct diag *diag)
{
    int sent_ok = PQsendQueryParams(session->conn, text, 0, NULL, NULL, NULL,
                                    NULL, 0);

    return postgres_pipe_note(session, sent, -1, PG_NO_ITEM, sent_ok, diag);
}

static enum status send_begin(struct db_session *session, struct diag *diag)
{
    return postgres_pipe_text(
        session, PG_SENT_BEGIN,
        session->writes ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
                        : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        diag);
}

/* A pipeline outside of a transaction is one by itself, with settings of its
 * own where the session cannot keep them. */
static enum status send_settings(struct db_session *session, struct diag *diag)
{
    const char *settings = postgres_connect_settings(session);

    if (settings == NULL)
        return STATUS_OK;
    return postgres_pipe_text(session, PG_SENT_SETTING, settings, diag);
}

static enum status send_steps(struct db_session *session, struct diag *diag)
{
    enum status status = STATUS_OK;
    char text[64];

    for (size_t i = 0; status == STATUS_OK && i < session->nsteps; i++) {
        (void)snprintf(text, sizeof(text), "%s moontide_%d",
                       session->steps[i].what, session->steps[i].depth);
        status = postgres_pipe_text(session, PG_SENT_SETTING, text, diag);
    }
    session->nsteps = 0;
    return status;
}

static enum status open_pipe(struct db_session *session, struct diag *diag)
{
    if (session->streaming) /* nobody reads on */
        postgres_stream_drain(session);
    session->ncommands = session->nread = 0;
    session->cancelled = false;
    session->origin = DB_HOST;
    session->pipe++;
    if (session->conn == NULL || PQstatus(session->conn) == CONNECTION_BAD)
        return diag_set(diag, STATUS_LOST,
                        "the connection to the database is lost");
    return STATUS_OK;
}

static enum status send_first(struct db_session *session, bool idle,
                              struct diag *diag)
{
    enum status status = STATUS_OK;

    if (session->begin_pending)
        status = send_begin(session, diag);
    if (status == STATUS_OK && (session->begin_pending || idle))
        status = send_settings(session, diag);
    return status == STATUS_OK ? send_steps(session, diag) : status;
}

enum status postgres_pipe_start(struct db_session *session, struct diag *diag)
{
    enum status status = open_pipe(session, diag);

    if (status != STATUS_OK)
        return status;
    return send_first(session,
                      PQtransactionStatus(session->conn) == PQTRANS_IDLE, diag);
}

enum status postgres_pipe_start_ahead(struct db_session *session,
                                      struct diag *diag)
{
    enum status status = open_pipe(session, diag);

    if (status == STATUS_OK)
        status = postgres_ahead_send(session, diag);
    if (status == STATUS_OK && session->ncommands > 0)
        status = postgres_pipe_note(session, PG_SENT_SYNC, -1, PG_NO_ITEM,
                                    PQpipelineSync(session->conn), diag);
    return status == STATUS_OK ? send_first(session, false, diag) : status;
}

/* --- answers ------------------------------------------------------------- */

struct answers {
    struct db_session *session;
    PGresult *last;
    size_t *failed;
    bool committed;
    enum status status;
    struct diag *diag;
};

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
           status == PGRES_EMPTY_QUERY;
}

enum status postgres_pipe_judge(struct db_session *session,
                                const struct postgres_command *command,
                                const PGresult *result, struct diag *diag)
{
    if (PQresultStatus(result) == PGRES_EMPTY_QUERY)
        return diag_set(diag, STATUS_PERMANENT, "the statement is empty");
    if (!is_good(result)) {
        session->origin = command->origin;
        if (postgres_error_is(result, "0A000") ||
            postgres_error_is(result, "26000"))
            postgres_cache_forget(session, command->place);
        return postgres_error(session, result, diag);
    }
    /* the server answers COMMIT with ROLLBACK when the transaction failed */
    if (command->sent == PG_SENT_COMMIT &&
        strcmp(PQcmdStatus((PGresult *)result), "COMMIT") != 0)
        return diag_set(diag, STATUS_PERMANENT,
                        "the database rolled the transaction back instead of "
                        "committing it");
    return STATUS_OK;
}

static void take_answer(struct answers *answers,
                        const struct postgres_command *command,
                        PGresult *result)
{
    struct db_session *session = answers->session;
    bool aborted = PQresultStatus(result) == PGRES_PIPELINE_ABORTED;
    bool good = is_good(result);
    enum status status;

    /* another transaction may be about to begin behind the one in flight */
    if (command->sent == PG_SENT_BEGIN && good && !session->in_flight)
        session->begin_pending = false;
    if (command->place >= 0 && !aborted)
        postgres_cache_answered(session, command->place, command->sent, good);
    /* behind a commit nothing can fail any more: what was asked for there is
     * asked for again when it is needed */
    if (command->sent == PG_SENT_AHEAD)
        postgres_ahead_answered(session, command->item, good ? result : NULL);
    if (answers->committed || command->sent == PG_SENT_AHEAD) {
        if (command->sent != PG_SENT_AHEAD || !good)
            PQclear(result);
        return;
    }
    answers->committed = command->sent == PG_SENT_COMMIT && good &&
                         answers->status == STATUS_OK &&
                         strcmp(PQcmdStatus(result), "COMMIT") == 0;
    if (answers->status == STATUS_OK && !aborted) {
        status = postgres_pipe_judge(session, command, result, answers->diag);
        answers->status = status;
        if (status != STATUS_OK && command->item != PG_NO_ITEM &&
            answers->failed != NULL)
            *answers->failed = command->item;
    }
    if (command->sent == PG_SENT_STATEMENT && answers->status == STATUS_OK) {
        PQclear(answers->last);
        answers->last = result;
        return;
    }
    PQclear(result);
}

static enum status read_command(struct answers *answers,
                                const struct postgres_command *command)
{
    struct db_session *session = answers->session;
    bool any = false;

    for (;;) {
        PGresult *result = NULL;
        enum status status = postgres_pipe_result(session, &result,
                                                  answers->diag);

        if (status != STATUS_OK)
            return status;
        if (result == NULL)
            break;
        any = true;
        take_answer(answers, command, result);
        if (PQstatus(session->conn) == CONNECTION_BAD)
            return answers->status == STATUS_OK ? lost(session, answers->diag)
                                                : STATUS_LOST;
    }
    return any ? STATUS_OK : lost(session, answers->diag);
}

enum status postgres_pipe_read_sync(struct db_session *session,
                                    struct diag *diag)
{
    PGresult *result = NULL;
    enum status status = postgres_pipe_result(session, &result, diag);
    bool sync = PQresultStatus(result) == PGRES_PIPELINE_SYNC;

    PQclear(result);
    return status == STATUS_OK && !sync ? lost(session, diag) : status;
}

/* The connection is useless: what is known about its death stays as said. */
static enum status give_up(struct answers *answers, enum status status)
{
    if (answers->status != STATUS_LOST && answers->status != STATUS_OK &&
        answers->diag != NULL)
        answers->diag->status = STATUS_LOST;
    PQclear(answers->last);
    postgres_connect_close(answers->session);
    (void)status;
    return STATUS_LOST;
}

/* Reads the answers up to `end`. */
static enum status read_to(struct answers *answers, size_t end)
{
    struct db_session *session = answers->session;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && session->nread < end) {
        const struct postgres_command
            *command = &session->commands[session->nread++];

        status = command->sent == PG_SENT_SYNC
                     ? postgres_pipe_read_sync(session, answers->diag)
                     : read_command(answers, command);
    }
    return status;
}

enum status postgres_pipe_end(struct db_session *session, struct diag *diag)
{
    session->round_trips++;
    if (PQpipelineSync(session->conn) == 0)
        return lost(session, diag);
    return flush(session, diag);
}

/* `status` is how the sending ended. */
static enum status read_rest(struct answers *answers, enum status status,
                             PGresult **last)
{
    if (status == STATUS_OK)
        status = read_to(answers, answers->session->ncommands);
    if (status == STATUS_OK)
        status = postgres_pipe_read_sync(answers->session, answers->diag);
    if (answers->committed && status != STATUS_OK) {
        /* lost behind the answer to COMMIT: the next call will see */
        PQclear(answers->last);
        postgres_connect_close(answers->session);
        return STATUS_OK;
    }
    if (status != STATUS_OK || answers->status == STATUS_LOST)
        return give_up(answers, status);
    if (answers->status == STATUS_OK && last != NULL)
        *last = answers->last;
    else
        PQclear(answers->last);
    return answers->status;
}

enum status postgres_pipe_finish(struct db_session *session, PGresult **last,
                                 size_t *failed, struct diag *diag)
{
    struct answers answers = {
        .session = session, .failed = failed, .diag = diag};

    if (last != NULL)
        *last = NULL;
    return read_rest(&answers, postgres_pipe_end(session, diag), last);
}

enum status postgres_pipe_read_to(struct db_session *session, size_t end,
                                  bool *failed, struct diag *diag)
{
    struct answers answers = {.session = session, .diag = diag};
    enum status status = read_to(&answers, end);

    PQclear(answers.last);
    *failed = answers.status != STATUS_OK;
    if (status == STATUS_OK && answers.status == STATUS_LOST)
        return STATUS_LOST;
    return status;
}

/* How many commands the first part has; 0 when there is none. */
static size_t first_part(const struct db_session *session)
{
    for (size_t i = session->nread; i < session->ncommands; i++)
        if (session->commands[i].sent == PG_SENT_SYNC)
            return i + 1;
    return 0;
}

/* One result that may be large waits where it is until it is asked for. */
static bool waits(const struct db_session *session, size_t end, size_t *place)
{
    size_t count = 0;

    for (size_t i = 0; i < end; i++) {
        if (session->commands[i].sent != PG_SENT_AHEAD)
            continue;
        *place = session->commands[i].item;
        count++;
    }
    return count == 1 && session->ahead[*place].sql.large;
}

/* The first part is what was announced; when that failed it is asked for again
 * when it is needed. */
static enum status read_first_part(struct db_session *session,
                                   struct diag *diag)
{
    size_t end = first_part(session);
    size_t place = 0;
    bool failed;

    if (waits(session, end, &place)) {
        postgres_ahead_leave(session, place);
        return STATUS_OK;
    }
    return postgres_pipe_read_to(session, end, &failed, diag);
}

enum status postgres_pipe_leave(struct db_session *session, struct diag *diag)
{
    enum status status = postgres_pipe_end(session, diag);

    if (status == STATUS_OK)
        status = read_first_part(session, diag);
    if (status != STATUS_OK) {
        postgres_connect_close(session);
        return STATUS_LOST;
    }
    session->in_flight = true;
    return STATUS_OK;
}

/* What was announced was not asked for. */
static void skip_first_part(struct db_session *session)
{
    postgres_ahead_none_comes(session);
    if (first_part(session) == 0)
        return;
    if (session->streaming || postgres_stream_start_ahead(session))
        postgres_stream_drain(session);
}

enum status postgres_pipe_answer(struct db_session *session, size_t *failed,
                                 struct diag *diag)
{
    struct answers answers = {
        .session = session, .failed = failed, .diag = diag};
    enum status status = STATUS_OK;

    skip_first_part(session);
    if (session->conn == NULL)
        status = diag_set(diag, STATUS_LOST,
                          "the connection to the database is lost");
    else
        status = read_rest(&answers, STATUS_OK, NULL);
    session->in_flight = false;
    return status;
}
