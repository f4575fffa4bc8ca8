/*
 * Waiting for the server: for as long as it works, and no longer. One that was
 * cut off without a word, or that something in between holds the connection
 * open for, would be waited for without an end otherwise.
 */
#include "db/postgres.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* How long an interrupted server may take to say so. */
#define CANCEL_GRACE (10 * CLOCK_SECOND)

/* How long an answer is waited for before somebody looks, in a session that is
 * no host's; and how long the answer to that look. */
#define LOOK_AFTER (60 * CLOCK_SECOND)
#define LOOK_GRACE (10 * CLOCK_SECOND)

/* --- whether it is at work ------------------------------------------------ */

static int64_t look_after(const struct db_session *session)
{
    return session->silence > 0 ? session->silence : LOOK_AFTER;
}

static int to_ms(int64_t us)
{
    if (us <= 0)
        return 0;
    return us / 1000 >= INT32_MAX ? INT32_MAX : (int)(us / 1000) + 1;
}

/* NULL when there is no answer in time. */
static PGresult *ask(PGconn *conn, const char *query)
{
    int64_t end = clock_monotonic() + LOOK_GRACE;

    if (PQsendQuery(conn, query) == 0)
        return NULL;
    while (PQisBusy(conn)) {
        struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
        int ready = poll(&fd, 1, to_ms(end - clock_monotonic()));

        if (ready == 0 || (ready < 0 && errno != EINTR))
            return NULL;
        if (ready > 0 && PQconsumeInput(conn) == 0)
            return NULL;
    }
    return PQgetResult(conn);
}

/* A process that waits for its client does not work: what was asked has not
 * come, or what it says does not. Behind a pooler nobody knows which process
 * works for this session: that the server answers has to be enough. */
static bool at_work(struct db_session *session)
{
    PGconn *conn = postgres_connect_dial(session->url);
    char query[192];
    PGresult *result = NULL;
    bool works;

    (void)snprintf(query, sizeof(query),
                   "SELECT 1 FROM pg_catalog.pg_stat_activity"
                   " WHERE pid = %d AND state = 'active'"
                   " AND wait_event_type IS DISTINCT FROM 'Client'",
                   PQbackendPID(session->conn));
    if (PQstatus(conn) == CONNECTION_OK)
        result = ask(conn, session->prepare ? query : "SELECT 1");
    works = PQntuples(result) == 1;
    PQclear(result);
    PQfinish(conn);
    return works;
}

/* --- waiting ------------------------------------------------------------- */

/* Asks the server to stop what it does; the answer comes as an error. */
static void cancel(struct db_session *session)
{
    PGcancel *request = PQgetCancel(session->conn);
    char error[256];

    session->cancelled = true;
    if (request == NULL)
        return;
    (void)PQcancel(request, error, sizeof(error));
    PQfreeCancel(request);
}

/* Microseconds until the deadline, or the end of the grace behind it. */
static int64_t patience(const struct db_session *session)
{
    return session->deadline - clock_monotonic() +
           (session->cancelled ? CANCEL_GRACE : 0);
}

/* LOST when there is nothing to wait for; the answer may have come during the
 * look. */
static enum status look(struct db_session *session, struct pollfd *fd,
                        struct diag *diag)
{
    if (at_work(session) || poll(fd, 1, 0) > 0)
        return STATUS_OK;
    return diag_set(diag, STATUS_LOST,
                    "the database does not answer, and is not at work on what "
                    "it was asked");
}

/* libpq waits for the answer to an interruption without a limit, so a server
 * that is gone is not interrupted. */
static enum status meet_deadline(struct db_session *session, struct pollfd *fd,
                                 struct diag *diag)
{
    enum status status;

    if (session->cancelled)
        return diag_set(diag, STATUS_LOST,
                        "the database does not answer, not even to an "
                        "interruption");
    status = look(session, fd, diag);
    if (status == STATUS_OK)
        cancel(session);
    return status;
}

enum status postgres_wait(struct db_session *session, bool write,
                          struct diag *diag)
{
    struct pollfd fd = {.fd = PQsocket(session->conn),
                        .events = (short)(POLLIN | (write ? POLLOUT : 0))};
    int64_t next_look = clock_monotonic() + look_after(session);
    enum status status = STATUS_OK;

    while (status == STATUS_OK) {
        int64_t left = next_look - clock_monotonic();
        int ready;

        if (session->deadline != 0 && patience(session) < left)
            left = patience(session);
        ready = poll(&fd, 1, to_ms(left));
        if (ready > 0)
            return STATUS_OK;
        if (ready < 0 && errno != EINTR)
            return diag_set(diag, STATUS_LOST, "poll: %s", strerror(errno));
        if (session->deadline != 0 && patience(session) <= 0)
            status = meet_deadline(session, &fd, diag);
        if (status == STATUS_OK && clock_monotonic() >= next_look) {
            status = look(session, &fd, diag);
            next_look = clock_monotonic() + look_after(session);
        }
    }
    return status;
}
