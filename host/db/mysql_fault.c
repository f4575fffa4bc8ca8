#include "db/mysql_session.h"

#include <errmsg.h>
#include <inttypes.h>
#include <mysqld_error.h>

/* Codes that one of the two servers has and this header lacks. */
#define ERROR_FILE_WRITE        3    /* "Error writing file ... Errcode: 28" */
#define ERROR_CLUSTER_NOT_READY 1047 /* a Galera node that is no member */
#define ERROR_QUERY_TIMEOUT     3024 /* MySQL's name for 1969 */
#define ERROR_CLIENT_SILENT     4031
#define ERROR_SERVER_LOST_WHILE 2055

enum class {
    CLASS_PERMANENT,
    CLASS_UNIQUE,
    CLASS_CONFLICT,  /* the server rolled everything back */
    CLASS_LOCK_WAIT, /* it rolled one statement back: the rest must go */
    CLASS_STALE,     /* the prepared statement is out of date */
    CLASS_LOST,
    CLASS_READ_ONLY,
    CLASS_UNAVAILABLE,
    CLASS_TIME,
    CLASS_SIZE,
};

static const struct {
    unsigned code;
    enum class class;
} codes[] = {
    {ER_DUP_ENTRY, CLASS_UNIQUE},
    {ER_DUP_ENTRY_WITH_KEY_NAME, CLASS_UNIQUE},
    {ER_DUP_UNIQUE, CLASS_UNIQUE},
    {ER_LOCK_DEADLOCK, CLASS_CONFLICT},
    {ER_XA_RBDEADLOCK, CLASS_CONFLICT},
    {ER_CHECKREAD, CLASS_LOCK_WAIT},
    {ER_LOCK_WAIT_TIMEOUT, CLASS_LOCK_WAIT},
    {ER_LOCK_ABORTED, CLASS_LOCK_WAIT},
    {ER_QUERY_INTERRUPTED, CLASS_LOCK_WAIT},
    {ER_TABLE_DEF_CHANGED, CLASS_LOCK_WAIT}, /* since the view was taken */
    {ER_NEED_REPREPARE, CLASS_STALE},
    {CR_NEW_STMT_METADATA, CLASS_STALE},
    {CR_SERVER_GONE_ERROR, CLASS_LOST},
    {CR_SERVER_LOST, CLASS_LOST},
    {CR_COMMANDS_OUT_OF_SYNC, CLASS_LOST},
    {CR_MALFORMED_PACKET, CLASS_LOST},
    {ERROR_SERVER_LOST_WHILE, CLASS_LOST},
    {ER_SERVER_SHUTDOWN, CLASS_LOST},
    {ER_NORMAL_SHUTDOWN, CLASS_LOST},
    {ER_GOT_SIGNAL, CLASS_LOST},
    {ER_SHUTDOWN_COMPLETE, CLASS_LOST},
    {ER_ABORTING_CONNECTION, CLASS_LOST},
    {ER_NET_READ_ERROR_FROM_PIPE, CLASS_LOST},
    {ER_NET_FCNTL_ERROR, CLASS_LOST},
    {ER_NET_PACKETS_OUT_OF_ORDER, CLASS_LOST},
    {ER_NET_UNCOMPRESS_ERROR, CLASS_LOST},
    {ER_NET_READ_ERROR, CLASS_LOST},
    {ER_NET_READ_INTERRUPTED, CLASS_LOST},
    {ER_NET_ERROR_ON_WRITE, CLASS_LOST},
    {ER_NET_WRITE_INTERRUPTED, CLASS_LOST},
    {ER_NEW_ABORTING_CONNECTION, CLASS_LOST},
    {ER_CONNECTION_KILLED, CLASS_LOST},
    {ERROR_CLIENT_SILENT, CLASS_LOST},
    {ERROR_CLUSTER_NOT_READY, CLASS_LOST},
    {ER_OPTION_PREVENTS_STATEMENT, CLASS_READ_ONLY},
    {ER_READ_ONLY_MODE, CLASS_READ_ONLY},
    {ERROR_FILE_WRITE, CLASS_UNAVAILABLE},
    {ER_CON_COUNT_ERROR, CLASS_UNAVAILABLE},
    {ER_TOO_MANY_USER_CONNECTIONS, CLASS_UNAVAILABLE},
    {ER_USER_LIMIT_REACHED, CLASS_UNAVAILABLE},
    {ER_OUT_OF_RESOURCES, CLASS_UNAVAILABLE},
    {ER_OUTOFMEMORY, CLASS_UNAVAILABLE},
    {ER_DISK_FULL, CLASS_UNAVAILABLE},
    {ER_ERROR_ON_WRITE, CLASS_UNAVAILABLE},
    {ER_RECORD_FILE_FULL, CLASS_UNAVAILABLE},
    {ER_GET_ERRNO, CLASS_UNAVAILABLE},
    {ER_ERROR_DURING_COMMIT, CLASS_UNAVAILABLE},
    {ER_CRASHED_ON_USAGE, CLASS_UNAVAILABLE},
    {ER_NOT_KEYFILE, CLASS_UNAVAILABLE},
    {CR_CONNECTION_ERROR, CLASS_UNAVAILABLE},
    {CR_CONN_HOST_ERROR, CLASS_UNAVAILABLE},
    {CR_UNKNOWN_HOST, CLASS_UNAVAILABLE},
    {ER_STATEMENT_TIMEOUT, CLASS_TIME},
    {ERROR_QUERY_TIMEOUT, CLASS_TIME},
    {ER_NET_PACKET_TOO_LARGE, CLASS_SIZE},
    {CR_NET_PACKET_TOO_LARGE, CLASS_SIZE},
};

static enum class class_of(unsigned code) {
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]);
         i++){if (codes[i].code == code) return codes[i].class;}
return CLASS_PERMANENT;
}

/* "Duplicate entry '...' for key 'name'"; the entry may hold anything. */
static void name_constraint(const char *message, struct diag *diag)
{
    static const char before[] = "for key '";
    const char *name = NULL;

    for (const char *at = message; (at = strstr(at, before)) != NULL; at++)
        name = at + strlen(before);
    if (name != NULL)
        text_clean((struct text){name, strcspn(name, "'")}, diag->constraint,
                   sizeof(diag->constraint));
}

static enum status unique(const char *message, struct diag *diag)
{
    (void)diag_set(diag, STATUS_UNIQUE, "%s", message);
    if (diag != NULL)
        name_constraint(message, diag);
    return STATUS_UNIQUE;
}

/* What came before the failed statement must not be committed alone. */
static void roll_all_back(struct db_session *session)
{
    session->gone = session->in_transaction;
    if (!session->in_transaction)
        return;
    session->round_trips++;
    /* with other answers on their way, its own could not be told */
    if (session->unanswered > 0 ||
        mysql_query(session->handle, "ROLLBACK") != 0)
        session->broken = true;
}

static enum status lost(struct db_session *session, unsigned code,
                        const char *message, struct diag *diag)
{
    session->broken = true;
    return diag_set(diag, STATUS_LOST,
                    "the connection to the database is lost: %s (%u)", message,
                    code);
}

enum status mysql_fault(struct db_session *session, unsigned code,
                        const char *message, struct diag *diag)
{
    char copy[MYSQL_ERRMSG_SIZE]; /* a ROLLBACK empties the connection's */

    text_clean(text_of(message), copy, sizeof(copy));
    switch (class_of(code)) {
    case CLASS_UNIQUE:
        return unique(copy, diag);
    case CLASS_CONFLICT:
        session->gone = session->in_transaction;
        return diag_set(diag, STATUS_CONFLICT, "%s (%u)", copy, code);
    case CLASS_LOCK_WAIT:
        roll_all_back(session);
        return diag_set(diag, STATUS_CONFLICT, "%s (%u)", copy, code);
    case CLASS_STALE:
        return diag_set(diag, STATUS_CONFLICT,
                        "a table was changed while its statement was in use: "
                        "%s (%u)",
                        copy, code);
    case CLASS_LOST:
        return lost(session, code, copy, diag);
    case CLASS_READ_ONLY:
        if (strstr(copy, "read-only") == NULL &&
            strstr(copy, "read_only") == NULL)
            break;
        session->broken = true; /* after a switch another server writes */
        return diag_set(diag, STATUS_LOST,
                        "the server takes no writes now: %s (%u)", copy, code);
    case CLASS_UNAVAILABLE:
        return diag_set(diag, STATUS_UNAVAILABLE, "%s (%u)", copy, code);
    case CLASS_TIME:
        return diag_set(diag, STATUS_FAILED,
                        "the statement ran past its time limit and was "
                        "interrupted");
    case CLASS_SIZE:
        return diag_set(diag, STATUS_PERMANENT,
                        "%s (%u; max_allowed_packet of the server is %" PRIu64
                        " bytes)",
                        copy, code, session->packet_max);
    case CLASS_PERMANENT:
        break;
    }
    (void)diag_set(diag, STATUS_PERMANENT, "%s (%u)", copy, code);
    if (code == ER_NO_SUCH_TABLE) /* "Table 'schema.name' doesn't exist" */
        diag_name_quoted(diag, copy, '\'');
    return STATUS_PERMANENT;
}

enum status mysql_fault_handle(struct db_session *session, struct diag *diag)
{
    return mysql_fault(session, mysql_errno(session->handle),
                       mysql_error(session->handle), diag);
}

/* What comes in the middle of a result is known to the connection only. */
enum status mysql_fault_statement(struct db_session *session, MYSQL_STMT *stmt,
                                  struct diag *diag)
{
    if (mysql_stmt_errno(stmt) == 0)
        return mysql_fault_handle(session, diag);
    return mysql_fault(session, mysql_stmt_errno(stmt), mysql_stmt_error(stmt),
                       diag);
}

enum status mysql_fault_size(const struct db_session *session, const char *what,
                             uint64_t size, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT,
                    "%s has %" PRIu64 " bytes, and the server takes %" PRIu64
                    " at most (max_allowed_packet); shorten it or raise that "
                    "setting of the server",
                    what, size, session->packet_max);
}
