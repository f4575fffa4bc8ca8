#include "db/postgres.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Constants of the session.
 *
 * The lock timeout is the caller's busy timeout. A host that stands still in
 * a transaction (stopped, or in a handler without end) gives its locks up
 * after half an hour; a batch of slow handlers takes minutes. The server
 * looks every two seconds whether a host that waits for a long statement is
 * still there, so that the locks of a killed host go soon. A peer that is
 * gone without a word is noticed after about a minute.
 */
#define CONNECT_TIMEOUT  "10" /* seconds */
#define KEEPALIVE_IDLE   "30"
#define KEEPALIVE_STEP   "10"
#define KEEPALIVE_COUNT  "3"
#define TCP_USER_TIMEOUT "60000"          /* milliseconds */
#define IDLE_LIMIT       INT64_C(1800000) /* milliseconds */
#define ALIVE_CHECK      "2000"

bool postgres_connect_accepts(const char *url)
{
    return strncmp(url, "postgresql://", 13) == 0 ||
           strncmp(url, "postgres://", 11) == 0;
}

/* --- connecting ---------------------------------------------------------- */

#define WORDS_MAX 16

struct words {
    const char *keys[WORDS_MAX];
    const char *values[WORDS_MAX];
    size_t count;
};

static void add(struct words *words, const char *key, const char *value)
{
    words->keys[words->count] = key;
    words->values[words->count++] = value;
}

/* What libpq takes from its environment and from a service file comes after
 * what is said here, so a default is said only where they are silent. */
static void add_default(struct words *words, const char *url, const char *key,
                        const char *variable, const char *value)
{
    if (getenv("PGSERVICE") == NULL && strstr(url, "service=") == NULL &&
        (variable == NULL || getenv(variable) == NULL))
        add(words, key, value);
}

/* The URI stands behind the defaults, which it overrides, and before what
 * must hold. */
static void swallow(void *arg, const char *message)
{
    (void)arg;
    (void)message; /* "relation exists, skipping" is no news */
}

static void choose_words(const char *url, struct words *words)
{
    words->count = 0;
    add(words, "fallback_application_name", "moontide");
    add_default(words, url, "connect_timeout", "PGCONNECT_TIMEOUT",
                CONNECT_TIMEOUT);
    add_default(words, url, "target_session_attrs", "PGTARGETSESSIONATTRS",
                "read-write");
    add_default(words, url, "keepalives_idle", NULL, KEEPALIVE_IDLE);
    add_default(words, url, "keepalives_interval", NULL, KEEPALIVE_STEP);
    add_default(words, url, "keepalives_count", NULL, KEEPALIVE_COUNT);
    add_default(words, url, "tcp_user_timeout", NULL, TCP_USER_TIMEOUT);
    add(words, "dbname", url);
    add(words, "client_encoding", "UTF8");
    add(words, NULL, NULL);
}

PGconn *postgres_connect_dial(const char *url)
{
    struct words words;

    choose_words(url, &words);
    return PQconnectdbParams(words.keys, words.values, 1);
}

PGconn *postgres_connect_start(const char *url)
{
    struct words words;
    PGconn *conn;

    choose_words(url, &words);
    conn = PQconnectStartParams(words.keys, words.values, 1);
    (void)PQsetNoticeProcessor(conn, swallow, NULL);
    return conn;
}

enum status postgres_connect_check(const char *url, struct diag *diag)
{
    char *error = NULL;
    PQconninfoOption *parsed = PQconninfoParse(url, &error);
    enum status status = STATUS_OK;

    if (parsed == NULL) {
        struct text text = text_of(error != NULL ? error : "no memory");
        char clean[512];

        while (text.len > 0 && text.data[text.len - 1] == '\n')
            text.len--;
        text_clean(text, clean, sizeof(clean));
        status = diag_set(diag, STATUS_CONFIG,
                          "the database URL is not right: %s", clean);
    }
    PQconninfoFree(parsed);
    PQfreemem(error);
    return status;
}

/* --- settings ------------------------------------------------------------ */

static void append_settings(const struct db_session *session, bool local,
                            struct buffer *out)
{
    static const char *const settings[][2] = {
        {"TimeZone", "UTC"},
        {"DateStyle", "ISO, MDY"},
        {"IntervalStyle", "iso_8601"},
        {"extra_float_digits", "1"},
        {"bytea_output", "hex"},
        {"standard_conforming_strings", "on"},
        {"statement_timeout", "0"},
        {"idle_session_timeout", "0"},
        {"client_connection_check_interval", ALIVE_CHECK},
        /* statements join with unnest, which both kinds of plan do well */
        {"plan_cache_mode", "auto"},
    };

    int64_t silence = session->silence > 0 ? session->silence / 1000
                                           : IDLE_LIMIT;

    buffer_printf(out,
                  "SELECT set_config('lock_timeout', '%lld', %s),"
                  " set_config('idle_in_transaction_session_timeout',"
                  " '%lld', %s)",
                  (long long)(session->busy_timeout / 1000),
                  local ? "true" : "false", (long long)silence,
                  local ? "true" : "false");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        buffer_printf(out, ", set_config('%s', '%s', %s)", settings[i][0],
                      settings[i][1], local ? "true" : "false");
    if (session->read_only)
        buffer_printf(out, ", set_config('%s', 'on', %s)",
                      local ? "transaction_read_only"
                            : "default_transaction_read_only",
                      local ? "true" : "false");
}

/* Behind a pooler the next transaction may run in another session, and what
 * is set in this one would be found by strangers. */
const char *postgres_connect_settings(struct db_session *session)
{
    if (session->prepare)
        return NULL;
    if (session->settings.len == 0)
        append_settings(session, true, &session->settings);
    return session->settings.data;
}

static enum status set_up(struct db_session *session, struct diag *diag)
{
    struct buffer text = BUFFER_EMPTY;
    enum status status;

    append_settings(session, false, &text);
    status = postgres_pipe_start(session, diag);
    if (status == STATUS_OK)
        status = postgres_pipe_text(session, PG_SENT_SETTING, text.data, diag);
    if (status == STATUS_OK)
        status = postgres_pipe_finish(session, NULL, NULL, diag);
    buffer_free(&text);
    return status;
}

#define ABOUT_SERVER                                                           \
    "SELECT pg_is_in_recovery(),"                                              \
    " CASE WHEN current_schema() IS NULL"                                      \
    " THEN current_setting('search_path') END, current_user::text"

/* Marks and checkpoints of a replica would be those of another moment. And
 * without a current schema each statement would fail for a reason that tells
 * nobody what to do. */
static enum status judge_server(const struct db_session *session,
                                const PGresult *about, struct diag *diag)
{
    if (PQgetvalue(about, 0, 0)[0] != 0)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "server %s is in recovery (a replica): positions and "
                        "checkpoints are read from the primary only; name it "
                        "in the URL, or several hosts with "
                        "target_session_attrs=read-write",
                        PQhost(session->conn));
    if (PQgetisnull(about, 0, 1) == 0)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "the search_path of database '%s' is %s, and no schema "
                        "of it is there for role '%s': make one with CREATE "
                        "SCHEMA, let the role use it with GRANT USAGE ON "
                        "SCHEMA, or name another one in the URL "
                        "(options=-csearch_path%%3DNAME) or by ALTER ROLE",
                        PQdb(session->conn), PQgetvalue(about, 0, 1),
                        PQgetvalue(about, 0, 2));
    return STATUS_OK;
}

static enum status check_server(struct db_session *session, struct diag *diag)
{
    PGresult *about;
    enum status status = postgres_statement_ask(session, ABOUT_SERVER, NULL, 0,
                                                &about, diag);

    if (status == STATUS_OK && PQntuples(about) == 1)
        status = judge_server(session, about, diag);
    PQclear(about);
    return status;
}

enum status postgres_connect_open(struct db_session *session, struct diag *diag)
{
    enum status status = postgres_connect_check(session->url, diag);

    if (status != STATUS_OK)
        return status;
    session->conn = postgres_connect_dial(session->url);
    if (PQstatus(session->conn) != CONNECTION_OK) {
        status = postgres_error_connect(session, diag);
        postgres_connect_close(session);
        return status;
    }
    (void)PQsetNoticeProcessor(session->conn, swallow, NULL);
    if (PQsetnonblocking(session->conn, 1) != 0 ||
        PQenterPipelineMode(session->conn) == 0) {
        status = postgres_error_connect(session, diag);
        postgres_connect_close(session);
        return status;
    }
    status = check_server(session, diag);
    if (status == STATUS_OK && session->prepare)
        status = set_up(session, diag);
    if (status == STATUS_OK)
        return STATUS_OK;
    postgres_connect_close(session);
    /* nothing was under way that could be lost */
    if (status == STATUS_LOST && diag != NULL)
        diag->status = STATUS_UNAVAILABLE;
    return status == STATUS_LOST ? STATUS_UNAVAILABLE : status;
}

void postgres_connect_close(struct db_session *session)
{
    if (session->conn != NULL)
        PQfinish(session->conn);
    session->conn = NULL;
    session->begin_pending = false;
    session->in_flight = false;
    session->streaming = false;
    session->nsteps = 0;
    postgres_cache_forget_server(session);
    postgres_ahead_clear(session);
    postgres_columns_forget(session);
}
