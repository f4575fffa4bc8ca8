#include "db/mysql_session.h"

#include "base/clock.h"

#include <errmsg.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What a server may be set up to do otherwise. READ COMMITTED: a poller must
 * see what was committed since its last look. The mode: nothing is cut or
 * made up, "name" quotes a name, a backslash is a letter, || joins text, and
 * an UPDATE sees the old values, as on every other database. */
#define SQL_MODE                                                               \
    "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"                          \
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,ANSI_QUOTES,"           \
    "NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,SIMULTANEOUS_ASSIGNMENT"

#define OLDEST_VERSION 100600u /* JSON_TABLE; RETURNING came before */

/* --- reaching the server -------------------------------------------------- */

static void set_timeout(MYSQL *handle, enum mysql_option option,
                        unsigned seconds)
{
    (void)mysql_options(handle, option, &seconds);
}

static void set_tls(MYSQL *handle, const struct mysql_url *url)
{
    my_bool enforce = 1; /* the library knows no "if the server can" */
    my_bool verify = url->tls == MYSQL_TLS_VERIFY_IDENTITY;

    (void)mysql_ssl_set(handle, url->ssl_key, url->ssl_cert, url->ssl_ca, NULL,
                        NULL);
    (void)mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &enforce);
    (void)mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

static void set_options(MYSQL *handle, const struct mysql_url *url, bool tls)
{
    my_bool off = 0;
    unsigned no = 0;
    unsigned protocol = url->host != NULL ? MYSQL_PROTOCOL_TCP
                                          : MYSQL_PROTOCOL_SOCKET;

    set_timeout(handle, MYSQL_OPT_CONNECT_TIMEOUT, url->connect_timeout);
    set_timeout(handle, MYSQL_OPT_READ_TIMEOUT, MYSQL_ANSWER_SECONDS);
    set_timeout(handle, MYSQL_OPT_WRITE_TIMEOUT, MYSQL_ANSWER_SECONDS);
    (void)mysql_options(handle, MYSQL_OPT_RECONNECT, &off);
    (void)mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &no);
    (void)mysql_options(handle, MYSQL_OPT_PROTOCOL, &protocol);
    (void)mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    (void)mysql_optionsv(handle, MYSQL_OPT_CONNECT_ATTR_RESET, NULL);
    (void)mysql_optionsv(handle, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name",
                         "moontide");
    if (tls)
        set_tls(handle, url);
}

static enum status unreachable(struct db_session *session, struct diag *diag)
{
    const struct mysql_url *url = &session->url;
    const char *at = url->host != NULL     ? url->host
                     : url->socket != NULL ? url->socket
                                           : "its socket";

    /* whatever the reason is: there was no connection yet */
    (void)mysql_fault_handle(session, diag);
    if (diag != NULL)
        diag->status = STATUS_UNAVAILABLE;
    (void)diag_wrap(diag, "database \"%s\" at %s", url->database, at);
    return STATUS_UNAVAILABLE;
}

/* False: the reason is in the handle, if there is one. */
static bool connect_once(struct db_session *session, bool tls)
{
    const struct mysql_url *url = &session->url;

    session->handle = mysql_init(NULL);
    if (session->handle == NULL)
        return false;
    set_options(session->handle, url, tls);
    return mysql_real_connect(session->handle, url->host, url->user,
                              url->password, url->database, url->port,
                              url->socket, CLIENT_FOUND_ROWS) != NULL;
}

static enum status reach(struct db_session *session, struct diag *diag)
{
    const struct mysql_url *url = &session->url;
    bool preferred = url->tls == MYSQL_TLS_PREFERRED;
    /* nobody listens in on a socket */
    bool tls = preferred ? url->host != NULL : url->tls != MYSQL_TLS_DISABLED;
    bool connected = connect_once(session, tls);

    if (!connected && session->handle != NULL && tls && preferred &&
        url->ssl_ca == NULL &&
        mysql_errno(session->handle) == CR_SSL_CONNECTION_ERROR) {
        mysql_close(session->handle);
        connected = connect_once(session, false);
    }
    if (session->handle == NULL)
        return diag_set(diag, STATUS_UNAVAILABLE, "out of memory");
    return connected ? STATUS_OK : unreachable(session, diag);
}

/* --- the session ---------------------------------------------------------- */

static enum status check_server(struct db_session *session, struct diag *diag)
{
    const char *version = mysql_get_server_info(session->handle);

    if (strstr(version, "MariaDB") != NULL &&
        mysql_get_server_version(session->handle) >= OLDEST_VERSION)
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "the server is %.64s and MariaDB 10.6 or later is needed: "
                    "the host's statements use JSON_TABLE and RETURNING",
                    version);
}

/* Whole seconds, at least one: the server counts no finer. */
static int64_t lock_seconds(const struct db_session *session)
{
    int64_t seconds = (session->busy_timeout + CLOCK_SECOND - 1) / CLOCK_SECOND;

    return seconds > 0 ? seconds : 1;
}

static int64_t silence_seconds(const struct db_session *session)
{
    if (session->silence == 0)
        return MYSQL_SILENCE_SECONDS;
    return (session->silence + CLOCK_SECOND - 1) / CLOCK_SECOND;
}

/*
 * Everything that a server may preset for all its sessions and that would cut
 * an answer, refuse a statement or end a batch. DEFAULT would be what the
 * server presets. One pause inside a transaction may be as long as `silence`,
 * whichever of the server's clocks measures it.
 */
static enum status run_settings(struct db_session *session, struct diag *diag)
{
    struct buffer *text = &session->text;
    int64_t silence = silence_seconds(session);
    enum status status;

    status = mysql_statement_run_two(
        session, "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", diag);
    if (status != STATUS_OK)
        return status;
    buffer_clear(text);
    buffer_printf(text,
                  "SET SESSION autocommit = 0, time_zone = '+00:00',"
                  " sql_mode = '" SQL_MODE "',"
                  " innodb_lock_wait_timeout = %" PRId64 ","
                  " lock_wait_timeout = %" PRId64 ","
                  " max_statement_time = %d,"
                  " idle_transaction_timeout = %" PRId64 ","
                  " idle_write_transaction_timeout = %" PRId64 ","
                  " idle_readonly_transaction_timeout = %" PRId64 ","
                  " foreign_key_checks = 1, unique_checks = 1,"
                  " completion_type = NO_CHAIN,"
                  " sql_safe_updates = 0, sql_big_selects = 1,"
                  " sql_select_limit = 18446744073709551615,"
                  " group_concat_max_len = 1048576,"
                  " max_recursive_iterations = 4294967295,"
                  " default_storage_engine = InnoDB",
                  lock_seconds(session), lock_seconds(session),
                  MYSQL_STATEMENT_SECONDS, silence, silence, silence);
    return mysql_statement_run_two(session, text->data,
                                   session->read_only
                                       ? "SET SESSION TRANSACTION READ ONLY"
                                       : "SET SESSION TRANSACTION READ WRITE",
                                   diag);
}

/*
 * A proxy between host and server may have answered for it.
 *
 * A replica is known by its read-only switch, which an administrator's
 * session does not feel: it would write there. Later servers name the state
 * of the switch instead of numbering it.
 */
static enum status check_settings(struct db_session *session, struct diag *diag)
{
    static const char query[] =
        "SELECT @@max_allowed_packet,"
        " @@global.read_only NOT IN ('0', 'OFF') OR @@innodb_read_only,"
        " @@autocommit = 0 AND @@tx_isolation = 'READ-COMMITTED'"
        " AND @@time_zone = '+00:00'"
        " AND @@character_set_client = 'utf8mb4'"
        " AND @@collation_connection = 'utf8mb4_nopad_bin'"
        " AND @@sql_mode LIKE '%STRICT_ALL_TABLES%'"
        " AND @@sql_mode LIKE '%ANSI_QUOTES%'"
        " AND @@sql_mode LIKE '%NO_BACKSLASH_ESCAPES%'";
    MYSQL_RES *result;
    MYSQL_ROW row;
    bool good, replica = false;

    session->round_trips++;
    if (mysql_query(session->handle, query) != 0 ||
        (result = mysql_store_result(session->handle)) == NULL)
        return mysql_fault_handle(session, diag);
    row = mysql_fetch_row(result);
    good = row != NULL && row[0] != NULL && row[1] != NULL && row[2] != NULL &&
           *row[2] == '1';
    if (good) {
        session->packet_max = strtoull(row[0], NULL, 10);
        replica = *row[1] != '0';
    }
    mysql_free_result(result);
    if (replica)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "the server %.64s is read-only (a replica, or set so "
                        "with read_only): positions and checkpoints are read "
                        "from the primary only; name it in the URL",
                        mysql_get_host_info(session->handle));
    if (good)
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "the server did not keep the session's settings (READ "
                    "COMMITTED, UTC, utf8mb4, strict mode); a proxy that "
                    "shares connections cannot be used");
}

enum status mysql_connect_open(struct db_session *session, struct diag *diag)
{
    enum status status;

    session->broken = false;
    session->gone = false;
    session->in_transaction = false;
    session->schema = false;
    session->touched = false;
    session->time_limit = 0;
    status = reach(session, diag);
    if (status == STATUS_OK)
        status = check_server(session, diag);
    if (status == STATUS_OK)
        status = run_settings(session, diag);
    if (status == STATUS_OK)
        status = check_settings(session, diag);
    session->touched = false;
    if (status != STATUS_OK)
        mysql_connect_close(session);
    return status;
}

void mysql_connect_close(struct db_session *session)
{
    mysql_rows_end_all(session);
    mysql_cache_clear(session);
    if (session->handle != NULL)
        mysql_close(session->handle);
    session->handle = NULL;
    session->broken = true;
}

/* --- the time limit of scripts -------------------------------------------- */

/* What is left of a limit shrinks from statement to statement; setting it anew
 * each time would double the round trips, so a limit that is at most a quarter
 * too long stays. */
static bool limit_fits(int64_t limit, int64_t left)
{
    return limit >= left && limit <= left + left / 4 + 10000;
}

enum status mysql_connect_limit(struct db_session *session,
                                enum db_origin origin, struct diag *diag)
{
    int64_t limit = 0;
    char text[96];
    enum status status;

    if (origin != DB_HOST && session->deadline != 0) {
        limit = session->deadline - clock_monotonic();
        if (limit <= 0)
            return diag_set(diag, STATUS_FAILED,
                            "the time limit was over before the statement "
                            "began");
        if (session->time_limit != 0 && limit_fits(session->time_limit, limit))
            return STATUS_OK;
        limit += limit / 8;
    }
    if (limit == session->time_limit)
        return STATUS_OK;
    (void)snprintf(text, sizeof(text),
                   "SET SESSION max_statement_time = %" PRId64 ".%06" PRId64,
                   limit == 0 ? MYSQL_STATEMENT_SECONDS : limit / CLOCK_SECOND,
                   limit % CLOCK_SECOND);
    status = mysql_statement_run(session, text, diag);
    if (status == STATUS_OK)
        session->time_limit = limit;
    return status;
}
