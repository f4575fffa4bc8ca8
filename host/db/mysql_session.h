/*
 * MySQL session -- what the files of the MySQL driver share: the session, and
 * the few functions that cross their borders. Nobody outside of
 * host/db/mysql*.c includes this.
 *
 * mysql.c            transactions, the driver's table
 * mysql_connect.c    a connection and its settings
 * mysql_fault.c      the server's codes become the host's statuses
 * mysql_cache.c      prepared statements
 * mysql_param.c      parameters
 * mysql_statement.c  execute, scripts of statements
 * mysql_rows.c       results and their values
 * mysql_bulk.c       texts of bulk statements
 * mysql_queue.c      sends the queue
 * mysql_lookup.c     rows of many keys
 * mysql_shape.c      tables of a shape
 * mysql_scratch.c    databases for tests
 * mysql_scan.c, mysql_guard.c, mysql_url.c   have headers of their own
 *
 * The session is never in autocommit mode. Statements of a transaction go out
 * many at a time, and some errors end the transaction; what then still comes
 * in begins another one, which is rolled back, too, instead of being committed
 * one by one.
 */
#ifndef HOST_DB_MYSQL_SESSION_H
#define HOST_DB_MYSQL_SESSION_H

#include "base/arena.h"
#include "base/buffer.h"
#include "db/driver.h"
#include "db/mysql_scan.h"
#include "db/mysql_url.h"

#include <mysql.h>

#ifndef LIBMARIADB
#error "this driver needs MariaDB Connector/C (libmariadb)"
#endif

#define MYSQL_CACHE_MAX 128 /* prepared statements kept per session */

/* Seconds. A connection whose other end is gone is noticed after the answer
 * of the longest statement is overdue, and the server gives the locks of a
 * host free that has gone silent. */
#define MYSQL_STATEMENT_SECONDS 60
#define MYSQL_ANSWER_SECONDS    75
#define MYSQL_SILENCE_SECONDS   120

struct mysql_cell;  /* mysql_rows.c: one column's buffer */
struct mysql_saved; /* mysql_rows.c: a row that was read ahead */

struct mysql_statement {
    MYSQL_STMT *handle;
    struct text text; /* own copy: `text` of a script does not live on */
    uint64_t hash;
    enum db_origin origin;
    bool cached; /* false: gone when it is released */
    bool in_use;
    uint64_t used; /* time of last use, counted in statements */
    struct mysql_marks marks;
    bool gives_rows;          /* the answer is more than a number of rows */
    struct mysql_cell *cells; /* one per column of the result */
    MYSQL_BIND *binds;
    size_t ncells;
};

struct mysql_rows {
    struct db_rows base;
    struct db_session *session;
    struct mysql_statement *statement; /* NULL: ended with its transaction */
    struct mysql_rows *next;           /* list of open results */
    bool ended;
    struct mysql_saved *saved; /* what is left, read ahead */
    struct mysql_saved **last_saved;
    struct arena arena;    /* of `saved` */
    enum status after;     /* what comes behind the saved rows */
    struct diag after_why; /* when that is a failure */
};

struct db_session {
    MYSQL *handle; /* NULL after a failed reconnect */
    struct mysql_url url;
    bool read_only;
    int64_t busy_timeout;
    int64_t silence; /* in a transaction, microseconds; 0: the usual */
    const struct catalog_name *host_tables; /* scripts may not write them */
    uint64_t packet_max; /* the server's max_allowed_packet */

    bool in_transaction; /* as the core believes */
    bool schema;         /* begun by begin_schema: DDL is allowed */
    bool touched;        /* something was sent that needs an end */
    bool gone;           /* the server has rolled the transaction back */
    bool broken;         /* unusable: reconnect */
    size_t unanswered;   /* statements that were sent and not answered */

    int64_t deadline;   /* clock_monotonic; 0: none */
    int64_t time_limit; /* microseconds, as the server has it; 0: the usual */

    struct mysql_statement *cache[MYSQL_CACHE_MAX];
    uint64_t uses;
    struct mysql_rows *open;      /* results that hold a statement */
    struct mysql_rows *streaming; /* the one whose rows are on their way */
    struct arena params;          /* values of the statement under way */
    struct buffer text;           /* statements built here */
    int64_t round_trips;
};

/* --- mysql_connect.c ------------------------------------------------------ */

/** Connects, sets the session up and reads it back. */
enum status mysql_connect_open(struct db_session *session,
                               struct diag *diag) MUST_CHECK;
void mysql_connect_close(struct db_session *session);
/** For statements of a script the server's time limit is set to what is left
 * of the deadline, for the host's own to the usual one. */
enum status mysql_connect_limit(struct db_session *session,
                                enum db_origin origin,
                                struct diag *diag) MUST_CHECK;

/* --- mysql_fault.c -------------------------------------------------------- */

/** Turns an error of the server or the client into a status and a sentence.
 * After 1205 the whole transaction is rolled back, as 1213 does by itself. */
enum status mysql_fault(struct db_session *session, unsigned code,
                        const char *message, struct diag *diag);
/** The same for the last call of the connection, or of a statement. */
enum status mysql_fault_handle(struct db_session *session, struct diag *diag);
enum status mysql_fault_statement(struct db_session *session, MYSQL_STMT *stmt,
                                  struct diag *diag);
/** PERMANENT: too large for one packet. */
enum status mysql_fault_size(const struct db_session *session, const char *what,
                             uint64_t size, struct diag *diag);

/* --- mysql_cache.c -------------------------------------------------------- */

/** A statement that is prepared already and free, or NULL; taken when it is
 * found. */
struct mysql_statement *mysql_cache_find(struct db_session *session,
                                         const struct db_sql *sql);
/** Finds or prepares. Every statement taken is given back exactly once. */
enum status mysql_cache_take(struct db_session *session,
                             const struct db_sql *sql,
                             struct mysql_statement **statement,
                             struct diag *diag) MUST_CHECK;
void mysql_cache_give(struct db_session *session,
                      struct mysql_statement *statement);
/** The same, and forgets it: its preparation is out of date. */
void mysql_cache_drop(struct db_session *session,
                      struct mysql_statement *statement);
void mysql_cache_clear(struct db_session *session);

/* --- mysql_param.c -------------------------------------------------------- */

/** Binds the values of one execution; they live in session->params until the
 * statement was sent. */
enum status mysql_param_bind(struct db_session *session,
                             struct mysql_statement *statement,
                             const struct db_value *params, size_t nparams,
                             struct diag *diag) MUST_CHECK;
/** Bytes that a value takes in a packet, roughly and never too few. */
uint64_t mysql_param_size(const struct db_value *value);
/** Binds `nrows` rows of `ncolumns` values for one bulk execution; `order`
 * tells the column of each mark. */
enum status mysql_param_bind_rows(struct db_session *session,
                                  struct mysql_statement *statement,
                                  const struct db_value *values, size_t nrows,
                                  size_t ncolumns, const size_t *order,
                                  struct diag *diag) MUST_CHECK;

/* --- mysql_statement.c ---------------------------------------------------- */

/** Runs a text without parameters and without a result. */
enum status mysql_statement_run(struct db_session *session, const char *text,
                                struct diag *diag) MUST_CHECK;
/** Sends two of them in one round trip. */
enum status mysql_statement_run_two(struct db_session *session,
                                    const char *first, const char *second,
                                    struct diag *diag) MUST_CHECK;
/** Runs a taken statement with the bound values; without `affected` the
 * result, if it has one, waits for the caller. */
enum status mysql_statement_execute(struct db_session *session,
                                    const struct db_sql *sql,
                                    const struct db_value *params,
                                    size_t nparams, int64_t *affected,
                                    struct diag *diag) MUST_CHECK;
/** Whether it is an INSERT, UPDATE, DELETE or REPLACE. */
bool mysql_statement_writes(struct text sql);
enum status mysql_statement_script(struct db_session *session,
                                   struct text script, enum db_origin origin,
                                   struct diag *diag) MUST_CHECK;

/* --- mysql_rows.c --------------------------------------------------------- */

enum status mysql_rows_query(struct db_session *session,
                             const struct db_sql *sql,
                             const struct db_value *params, size_t nparams,
                             struct db_rows **rows,
                             struct diag *diag) MUST_CHECK;
enum status mysql_rows_next(struct db_rows *rows, bool *more,
                            struct diag *diag) MUST_CHECK;
void mysql_rows_close(struct db_rows *rows);
/** Reads the rows that are on their way into memory: the connection is needed
 * for something else. Called before anything is sent. */
void mysql_rows_settle(struct db_session *session);
/** Ends every open result; their owners still close them. */
void mysql_rows_end_all(struct db_session *session);
size_t mysql_rows_columns(const struct db_rows *rows);
const char *mysql_rows_column_name(const struct db_rows *rows, size_t column);

/* --- mysql_value.c -------------------------------------------------------- */

enum db_type mysql_value_type(const struct db_rows *rows, size_t column);
int64_t mysql_value_int64(struct db_rows *rows, size_t column);
double mysql_value_double(struct db_rows *rows, size_t column);
bool mysql_value_bool(struct db_rows *rows, size_t column);
struct text mysql_value_text(struct db_rows *rows, size_t column);
int64_t mysql_value_timestamp(struct db_rows *rows, size_t column);
struct uuid mysql_value_uuid(struct db_rows *rows, size_t column);

/* --- mysql_bulk.c --------------------------------------------------------- */

/** Builds the statement of a bulk into session->text; `order` takes the column
 * of each mark, `norder` their number. */
enum status mysql_bulk_text(struct db_session *session, enum db_bulk what,
                            const struct db_table *table, size_t *order,
                            size_t *norder, struct diag *diag) MUST_CHECK;

/* --- mysql_queue.c -------------------------------------------------------- */

/** Runs queued statements in order; *failed is the index of the bad one. */
enum status mysql_queue_run(struct db_session *session,
                            const struct db_queued *queue, size_t count,
                            size_t *failed, struct diag *diag) MUST_CHECK;

/* --- mysql_lookup.c ------------------------------------------------------- */

enum status mysql_lookup(struct db_session *session,
                         const struct db_table *table, const struct text *keys,
                         size_t nkeys, db_lookup_fn fn, void *arg,
                         struct diag *diag) MUST_CHECK;

/* --- mysql_shape.c -------------------------------------------------------- */

enum status mysql_shape_create(struct db_session *session,
                               const struct db_shape *shape,
                               struct diag *diag) MUST_CHECK;
enum status mysql_shape_describe(struct db_session *session, const char *name,
                                 struct arena *arena, struct db_shape *shape,
                                 bool *exists, struct diag *diag) MUST_CHECK;
void mysql_shape_name(const char *name, struct buffer *out);
void mysql_shape_print(const struct db_shape *shape, struct buffer *out);
const char *mysql_shape_fits(const struct db_shape_column *wanted,
                             const struct db_shape_column *actual);

/* --- mysql_scratch.c ------------------------------------------------------ */

/** Makes a database for a test and appends its URL; without `out` drops the
 * one of the URL. */
enum status mysql_scratch(const char *url, struct buffer *out,
                          struct diag *diag) MUST_CHECK;

#endif
