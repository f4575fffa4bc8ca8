#include "db/postgres.h"

#include <stdio.h>

/* What a class or a code of SQLSTATE means for the host. The first row whose
 * text the code begins with is taken, so codes stand before their class. */
static const struct {
    const char *prefix;
    enum status status;
} statuses[] = {
    {"23505", STATUS_UNIQUE},
    {"25006", STATUS_LOST}, /* read-only: this is no primary any more */
    {"25P03", STATUS_LOST}, /* idle in transaction for too long */
    {"40003", STATUS_LOST}, /* completion unknown */
    {"40", STATUS_CONFLICT},
    {"55P03", STATUS_CONFLICT}, /* a lock was not to be had in time */
    {"55006", STATUS_CONFLICT}, /* object in use */
    {"57014", STATUS_CONFLICT}, /* an operator cancelled it */
    {"57P01", STATUS_LOST},
    {"57P02", STATUS_LOST},
    {"57P03", STATUS_LOST},
    {"57P05", STATUS_LOST},
    {"08", STATUS_LOST},
    {"53400", STATUS_PERMANENT}, /* the statement is above a set limit */
    {"53", STATUS_UNAVAILABLE},  /* disk, memory or connections run out */
    {"58", STATUS_UNAVAILABLE},  /* the server's own input and output */
    {"XX001", STATUS_UNAVAILABLE},
    {"XX002", STATUS_UNAVAILABLE},
};

static const char *field(const PGresult *result, int code)
{
    const char *value = PQresultErrorField(result, code);

    return value != NULL ? value : "";
}

bool postgres_error_is(const PGresult *result, const char *sqlstate)
{
    return strcmp(field(result, PG_DIAG_SQLSTATE), sqlstate) == 0;
}

static enum status status_of(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (strncmp(sqlstate, statuses[i].prefix, strlen(statuses[i].prefix)) ==
            0)
            return statuses[i].status;
    }
    return STATUS_PERMANENT;
}

static enum status read_only(const struct db_session *session,
                             struct diag *diag)
{
    if (session->origin == DB_SCRIPT_READ)
        return diag_set(diag, STATUS_PERMANENT,
                        "a script's statement tried to write, and here it may "
                        "only read");
    if (session->read_only || !session->writes)
        return diag_set(diag, STATUS_PERMANENT,
                        "the statement writes, but the %s was opened for "
                        "reading only",
                        session->read_only ? "database" : "transaction");
    return diag_set(diag, STATUS_LOST,
                    "the server takes no writes: it is a replica, or it was "
                    "set to read-only; the host needs the primary");
}

/* What a statement with an expected number of rows says when it fails. */
static bool wrong_count(const PGresult *result, struct diag *diag)
{
    const char *message = field(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *mark = strstr(message, PG_COUNT_MARK);

    if (!postgres_error_is(result, "22P02") || mark == NULL)
        return false;
    mark += strlen(PG_COUNT_MARK);
    (void)diag_set(diag, STATUS_CONFLICT, "%.*s",
                   (int)strcspn(mark, PG_COUNT_END), mark);
    return true;
}

static void add_part(struct buffer *out, const char *name, const char *value)
{
    if (value[0] != '\0')
        buffer_printf(out, "%s%s", name, value);
}

static void write_message(const PGresult *result, struct buffer *out)
{
    buffer_append_string(out, field(result, PG_DIAG_MESSAGE_PRIMARY));
    add_part(out, "; ", field(result, PG_DIAG_MESSAGE_DETAIL));
    add_part(out, "; hint: ", field(result, PG_DIAG_MESSAGE_HINT));
    if (strstr(out->data, field(result, PG_DIAG_TABLE_NAME)) == NULL)
        add_part(out, "; table ", field(result, PG_DIAG_TABLE_NAME));
    add_part(out, "; in ", field(result, PG_DIAG_CONTEXT));
    add_part(out, " (SQLSTATE ", field(result, PG_DIAG_SQLSTATE));
    if (field(result, PG_DIAG_SQLSTATE)[0] != '\0')
        buffer_append_char(out, ')');
}

static enum status report(const PGresult *result, enum status status,
                          struct diag *diag)
{
    struct buffer message = BUFFER_EMPTY;
    char clean[DIAG_MESSAGE_SIZE];

    write_message(result, &message);
    if (message.len == 0)
        buffer_append_string(&message, PQresultErrorMessage(result));
    text_clean(buffer_text(&message), clean, sizeof(clean));
    buffer_free(&message);
    return diag_set(diag, status, "%s", clean);
}

/* Who may only read lacks nothing but the right to; the server names what it
 * is about, in English, and no right. */
static void add_grant(const struct db_session *session, const PGresult *result,
                      struct diag *diag)
{
    static const struct {
        const char *denied, *grant;
    } kinds[] = {
        {"permission denied for sequence ", "SELECT ON SEQUENCE"},
        {"permission denied for table ", "SELECT ON"},
        {"permission denied for view ", "SELECT ON"},
        {"permission denied for schema ", "USAGE ON SCHEMA"},
    };
    const char *message = field(result, PG_DIAG_MESSAGE_PRIMARY);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t len = strlen(kinds[i].denied);

        if (strncmp(message, kinds[i].denied, len) == 0)
            (void)diag_append(diag, "; GRANT %s %s TO %s", kinds[i].grant,
                              message + len, PQuser(session->conn));
    }
}

/* libpq's own messages end with a line break. */
static enum status connection_message(const char *message, enum status status,
                                      const char *what, struct diag *diag)
{
    struct text text = text_of(message);
    struct buffer line = BUFFER_EMPTY;
    char clean[DIAG_MESSAGE_SIZE];

    /* what follows in further lines is guessing */
    if (status == STATUS_LOST)
        text.len = strcspn(text.data, "\n");
    while (text.len > 0 &&
           (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
        text.len--;
    for (size_t i = 0; i < text.len; i++) /* a hint is a line of its own */
        if (text.data[i] == '\n')
            buffer_append_string(&line, "; ");
        else if (text.data[i] != '\t')
            buffer_append_char(&line, text.data[i]);
    text_clean(buffer_text(&line), clean, sizeof(clean));
    buffer_free(&line);
    return diag_set(diag, status, "%s: %s", what, clean);
}

static enum status lost(const char *message, struct diag *diag)
{
    return connection_message(message, STATUS_LOST,
                              "the connection to the database is lost", diag);
}

enum status postgres_error(struct db_session *session, const PGresult *result,
                           struct diag *diag)
{
    const char *sqlstate = field(result, PG_DIAG_SQLSTATE);
    enum status status = status_of(sqlstate);

    if (sqlstate[0] == '\0') /* libpq's own: there is no server to ask */
        return lost(PQresultErrorMessage(result), diag);
    if (PQstatus(session->conn) == CONNECTION_BAD)
        status = STATUS_LOST;
    if (strcmp(sqlstate, "25006") == 0)
        return read_only(session, diag);
    if (strcmp(sqlstate, "57014") == 0 && session->cancelled)
        return diag_set(diag, STATUS_FAILED,
                        "the statement ran past its time limit and was "
                        "interrupted");
    if (wrong_count(result, diag))
        return STATUS_CONFLICT;
    /* a table was altered under a prepared statement: it is prepared anew */
    if (strcmp(sqlstate, "0A000") == 0 &&
        strstr(field(result, PG_DIAG_MESSAGE_PRIMARY), "cached plan") != NULL)
        status = STATUS_CONFLICT;
    if (strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0) {
        (void)report(result, STATUS_PERMANENT, diag);
        return diag_wrap(diag,
                         "a pooler between host and server mixes up prepared "
                         "statements: set prepare = false");
    }
    (void)report(result, status, diag);
    if (status == STATUS_UNIQUE && diag != NULL) {
        text_clean(text_of(field(result, PG_DIAG_CONSTRAINT_NAME)),
                   diag->constraint, sizeof(diag->constraint));
    }
    /* a subquery with too many rows has the code, too */
    if (strcmp(sqlstate, "21000") == 0 &&
        strstr(field(result, PG_DIAG_MESSAGE_PRIMARY), "second time") != NULL)
        (void)diag_append(diag,
                          "; keys that are written differently, such as a UUID "
                          "in small and in capital letters, may be one for the "
                          "database: write a key in one way");
    if (session->read_only && strcmp(sqlstate, "42501") == 0)
        add_grant(session, result, diag);
    /* 'relation "name" does not exist', in whatever language */
    if (status == STATUS_PERMANENT && postgres_error_is(result, "42P01"))
        diag_name_quoted(diag, field(result, PG_DIAG_MESSAGE_PRIMARY), '"');
    return status;
}

enum status postgres_error_conn(const PGconn *conn, enum status status,
                                const char *what, struct diag *diag)
{
    const char *message = PQerrorMessage(conn);

    return connection_message(message[0] != '\0' ? message
                                                 : "it gives no answer",
                              status, what, diag);
}

enum status postgres_error_lost(struct db_session *session, struct diag *diag)
{
    return lost(PQerrorMessage(session->conn), diag);
}

/* The client library says what a server is not, and no more. */
enum status postgres_error_connect(struct db_session *session,
                                   struct diag *diag)
{
    const char *message = PQerrorMessage(session->conn);
    enum status status = connection_message(
        message, STATUS_UNAVAILABLE, "the database cannot be reached", diag);

    if (strstr(message, "session is read-only") != NULL)
        (void)diag_wrap(diag,
                        "the server is a replica, or set to read-only, and "
                        "positions and checkpoints are read from the primary "
                        "only; name it in the URL, too");
    return status;
}
