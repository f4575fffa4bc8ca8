/* A connection that does nothing but LISTEN. It is made step by step as the
 * server answers, since its owner has other things to do meanwhile. */
#include "base/memory.h"
#include "db/listener_kind.h"
#include "db/postgres.h"

#include <poll.h>

enum step {
    STEP_CONNECT,
    STEP_ASK,    /* for the channel's name */
    STEP_LISTEN, /* to it */
    STEP_HEAR,
};

struct postgres_ear {
    struct listener base;
    PGconn *conn;
    enum step step;
    PostgresPollingStatusType wants; /* STEP_CONNECT */
    bool unsent;                     /* libpq holds bytes for the server */
    char *question;                  /* gives the name of the channel */
    char *channel;
};

static void close_ear(struct listener *listener)
{
    struct postgres_ear *ear = (struct postgres_ear *)listener;

    PQfinish(ear->conn);
    mem_free(ear->question);
    mem_free(ear->channel);
    mem_free(ear);
}

static enum status lost(const struct postgres_ear *ear, struct diag *diag)
{
    return postgres_error_conn(
        ear->conn, ear->step == STEP_CONNECT ? STATUS_UNAVAILABLE : STATUS_LOST,
        "the connection for notifications", diag);
}

/* Nothing is said for as long as nothing happens, so the session may be idle.
 * The question follows in the same message. */
#define STAY_IDLE "SET idle_session_timeout = 0; "

static enum status open_ear(const char *url, struct text channel,
                            struct listener **listener, struct diag *diag)
{
    enum status status = postgres_connect_check(url, diag);
    struct buffer question = BUFFER_EMPTY;
    struct postgres_ear *ear;

    if (status != STATUS_OK)
        return status;
    ear = mem_alloc(sizeof(*ear));
    ear->base.kind = &postgres_listener;
    buffer_append_string(&question, STAY_IDLE);
    buffer_append_text(&question, channel);
    ear->question = mem_copy_text(question.data, question.len);
    buffer_free(&question);
    ear->conn = postgres_connect_start(url);
    ear->wants = PGRES_POLLING_WRITING;
    if (PQstatus(ear->conn) == CONNECTION_BAD) {
        status = lost(ear, diag);
        close_ear(&ear->base);
        return status;
    }
    *listener = &ear->base;
    return STATUS_OK;
}

static int ear_fd(const struct listener *listener, short *events)
{
    const struct postgres_ear *ear = (const struct postgres_ear *)listener;

    if (ear->step == STEP_CONNECT)
        *events = ear->wants == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    else
        *events = (short)(POLLIN | (ear->unsent ? POLLOUT : 0));
    return PQsocket(ear->conn);
}

static bool hears(const struct listener *listener)
{
    return ((const struct postgres_ear *)listener)->step == STEP_HEAR;
}

static enum status send_text(struct postgres_ear *ear, enum step step,
                             const char *text, struct diag *diag)
{
    int left;

    if (PQsendQuery(ear->conn, text) == 0)
        return lost(ear, diag);
    left = PQflush(ear->conn);
    if (left < 0)
        return lost(ear, diag);
    ear->unsent = left > 0;
    ear->step = step;
    return STATUS_OK;
}

/* --- one step after the other -------------------------------------------- */

static bool is_ready(const struct postgres_ear *ear)
{
    struct pollfd fd = {.revents = 0};

    fd.fd = ear_fd(&ear->base, &fd.events);
    return poll(&fd, 1, 0) > 0;
}

static enum status go_on_connecting(struct postgres_ear *ear, struct diag *diag)
{
    /* libpq takes it that the socket is ready for what it has asked for */
    while (is_ready(ear)) {
        ear->wants = PQconnectPoll(ear->conn);
        if (ear->wants == PGRES_POLLING_FAILED)
            return lost(ear, diag);
        if (ear->wants != PGRES_POLLING_OK)
            continue;
        if (PQsetnonblocking(ear->conn, 1) != 0)
            return lost(ear, diag);
        return send_text(ear, STEP_ASK, ear->question, diag);
    }
    return STATUS_OK;
}

static enum status read_server(struct postgres_ear *ear, struct diag *diag)
{
    int left = ear->unsent ? PQflush(ear->conn) : 0;

    if (left < 0 || PQconsumeInput(ear->conn) == 0)
        return lost(ear, diag);
    ear->unsent = left > 0;
    return STATUS_OK;
}

static enum status take_channel(struct postgres_ear *ear,
                                const PGresult *result, struct diag *diag)
{
    char *quoted;

    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        return STATUS_OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1 ||
        PQnfields(result) != 1)
        return lost(ear, diag);
    quoted = PQescapeIdentifier(ear->conn, PQgetvalue(result, 0, 0),
                                (size_t)PQgetlength(result, 0, 0));
    if (quoted == NULL)
        return lost(ear, diag);
    mem_free(ear->channel);
    ear->channel = mem_copy_text(quoted, strlen(quoted));
    PQfreemem(quoted);
    return STATUS_OK;
}

static enum status ask_to_listen(struct postgres_ear *ear, struct diag *diag)
{
    struct buffer text = BUFFER_EMPTY;
    enum status status;

    if (ear->channel == NULL)
        return lost(ear, diag);
    buffer_printf(&text, "LISTEN %s", ear->channel);
    status = send_text(ear, STEP_LISTEN, text.data, diag);
    buffer_free(&text);
    return status;
}

/* The answers to the question and to LISTEN, as far as they are there. */
static enum status take_answers(struct postgres_ear *ear, bool *heard,
                                struct diag *diag)
{
    while (ear->step != STEP_HEAR && PQisBusy(ear->conn) == 0) {
        PGresult *result = PQgetResult(ear->conn);
        enum status status = STATUS_OK;

        if (result != NULL) {
            status = take_channel(ear, result, diag);
        } else if (ear->step == STEP_ASK) {
            status = ask_to_listen(ear, diag);
        } else {
            /* what was committed before this was not heard */
            ear->step = STEP_HEAR;
            *heard = true;
        }
        PQclear(result);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static void take_notifications(struct postgres_ear *ear, bool *heard)
{
    PGnotify *notification;

    while ((notification = PQnotifies(ear->conn)) != NULL) {
        *heard = true;
        PQfreemem(notification);
    }
}

static enum status take(struct listener *listener, bool *heard,
                        struct diag *diag)
{
    struct postgres_ear *ear = (struct postgres_ear *)listener;
    enum status status = STATUS_OK;

    if (ear->step == STEP_CONNECT)
        status = go_on_connecting(ear, diag);
    if (status != STATUS_OK || ear->step == STEP_CONNECT)
        return status;
    status = read_server(ear, diag);
    if (status == STATUS_OK)
        status = take_answers(ear, heard, diag);
    if (status == STATUS_OK)
        take_notifications(ear, heard);
    return status;
}

const struct listener_kind postgres_listener = {
    .open = open_ear,
    .close = close_ear,
    .fd = ear_fd,
    .hears = hears,
    .take = take,
};
