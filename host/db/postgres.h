/*
 * PostgreSQL -- what the files of the PostgreSQL driver share: the session,
 * and the functions that cross their borders. Nobody outside of
 * host/db/postgres*.c includes this.
 *
 * postgres.c            transactions, the driver's table
 * postgres_connect.c    opening the connection, its settings
 * postgres_error.c      SQLSTATEs become the host's statuses
 * postgres_pipe.c       sends a pipeline and reads its answers
 * postgres_cache.c      statement texts, prepared on the server or not
 * postgres_param.c      parameters and arrays in the wire's form
 * postgres_statement.c  execute, query, scripts of statements
 * postgres_guard.c      what a script's statement may be
 * postgres_rows.c       results and their values
 * postgres_ahead.c      results that came along with a commit
 * postgres_stream.c     results whose rows are read one by one
 * postgres_bulk.c       the queue, bulk statements
 * postgres_lookup.c     rows by their keys
 * postgres_columns.c    types of a table's columns, as the bulk needs them
 * postgres_shape.c      tables of a shape
 * postgres_scratch.c    schemas for tests
 * postgres_listener.c   a connection that waits for notifications
 *
 * The connection is in pipeline mode all the time. BEGIN and the preparation
 * of statements travel with the first statement that needs them, so a
 * transaction costs one round trip for each time that somebody waits for an
 * answer, and no other.
 */
#ifndef HOST_DB_POSTGRES_H
#define HOST_DB_POSTGRES_H

#include "base/buffer.h"
#include "db/catalog.h"
#include "db/driver.h"

#include <libpq-fe.h>

#define POSTGRES_CACHE_MAX    256 /* statements kept */
#define POSTGRES_STEPS_MAX    32  /* steps between savepoints that wait */
#define POSTGRES_AHEAD_MAX    8   /* results that are kept for later */
#define POSTGRES_AHEAD_PARAMS 16

/* Types by their object ids, which never change (pg_type.dat). */
enum postgres_oid {
    PG_UNKNOWN_TYPE = 0, /* the server infers it */
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_NAME = 19,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_OID = 26,
    PG_JSON = 114,
    PG_FLOAT4 = 700,
    PG_FLOAT8 = 701,
    PG_UNKNOWN = 705,
    PG_BOOL_ARRAY = 1000,
    PG_BYTEA_ARRAY = 1001,
    PG_TEXT_ARRAY = 1009,
    PG_INT8_ARRAY = 1016,
    PG_FLOAT8_ARRAY = 1022,
    PG_BPCHAR = 1042,
    PG_VARCHAR = 1043,
    PG_DATE = 1082,
    PG_TIME = 1083,
    PG_TIMESTAMP = 1114,
    PG_TIMESTAMPTZ = 1184,
    PG_TIMESTAMPTZ_ARRAY = 1185,
    PG_NUMERIC = 1700,
    PG_UUID = 2950,
    PG_UUID_ARRAY = 2951,
    PG_JSONB = 3802,
};

/** One statement's text. `slot` of the server is named by the index. */
struct postgres_statement {
    char *text; /* as asked for; NULL: the place is free */
    size_t len;
    uint64_t hash;
    enum db_origin origin;
    char *sent_text; /* with $n instead of ?n */
    unsigned *types; /* of the parameters, as prepared */
    size_t nparams;
    bool on_server; /* the server has a statement of this place's name */
    bool ready;     /* ... and it is this one */
    uint64_t pipe;  /* the pipeline that uses it: it stays until its end */
    uint64_t used;  /* order of last use */
    uint64_t runs;  /* since the text came here */
    uint64_t plans; /* `runs` at which the server plans it anew */
};

struct postgres_cache {
    struct postgres_statement places[POSTGRES_CACHE_MAX];
    uint64_t clock;
};

/** What a sent command was, to know what its answer means. */
enum postgres_sent {
    PG_SENT_BEGIN,
    PG_SENT_SETTING, /* savepoints and settings of the driver's */
    PG_SENT_DEALLOCATE,
    PG_SENT_PREPARE,
    PG_SENT_STATEMENT,
    PG_SENT_COMMIT,
    PG_SENT_AHEAD, /* what was announced; `item` is its place */
    PG_SENT_SYNC,  /* the end of a part that is answered by itself */
};

struct postgres_command {
    enum postgres_sent sent;
    int place;   /* of the cache, -1: none */
    size_t item; /* of the queue; PG_NO_ITEM */
    enum db_origin origin;
};

#define PG_NO_ITEM SIZE_MAX

/** SAVEPOINT, RELEASE or ROLLBACK TO that has not been sent. */
struct postgres_step {
    const char *what;
    int depth;
};

/** Parameters in the form of libpq's arrays; `values` points into the
 * caller's texts and into `bytes`. */
struct postgres_params {
    size_t count;
    size_t capacity;
    unsigned *types;
    const char **values; /* NULL: SQL NULL */
    int *lengths;
    int *formats;    /* 1: binary */
    size_t *offsets; /* where a value lies in `bytes`; PG_BORROWED */
    struct buffer bytes;
};

/** A column as a bulk statement must know it. */
struct postgres_column {
    char name[64]; /* lower case */
    unsigned type;
    char type_name[64]; /* without length or precision */
};

struct postgres_columns; /* postgres_columns.c */

/** A query that was announced, and its result once it is there. */
struct postgres_ahead {
    struct db_sql sql;
    struct db_value params[POSTGRES_AHEAD_PARAMS];
    size_t nparams;
    bool wanted;      /* goes out with the next commit */
    bool coming;      /* its rows are the next that will be read */
    PGresult *result; /* NULL: not there */
    uint64_t used;
    int64_t *integers; /* copy of the one list of numbers among them */
};

struct db_session {
    PGconn *conn; /* NULL: closed */
    char *url;
    bool read_only;
    bool prepare;
    int64_t busy_timeout;
    int64_t silence; /* in a transaction, microseconds; 0: IDLE_LIMIT */
    const struct catalog_name *host_tables; /* scripts may not write them */

    bool in_transaction; /* begun with db_begin or db_begin_read */
    bool writes;         /* ... the first */
    /* what the next pipeline begins with: nobody waits for it alone */
    bool begin_pending;
    struct postgres_step steps[POSTGRES_STEPS_MAX];
    size_t nsteps;
    enum db_origin origin; /* of the statement that an error is about */

    int64_t deadline; /* clock_monotonic; 0: none */
    bool cancelled;   /* the deadline passed in this pipeline */

    struct postgres_command *commands; /* of the pipeline under way */
    size_t ncommands;
    size_t commands_capacity;
    size_t nread;     /* of the commands, how many are answered */
    bool in_flight;   /* the answer to their COMMIT is waited for later */
    bool streaming;   /* rows of the command `nread` are read one by one */
    uint64_t streams; /* counts them */
    uint64_t pipe;

    struct postgres_cache cache;
    struct postgres_columns *columns;
    struct postgres_ahead ahead[POSTGRES_AHEAD_MAX];
    uint64_t ahead_clock;
    struct buffer settings; /* of each transaction, behind a pooler */
    struct buffer text;     /* statements built here */
    struct postgres_params params;
    int64_t round_trips;
};

/* --- postgres_connect.c -------------------------------------------------- */

bool postgres_connect_accepts(const char *url);
/** CONFIG when it is not written as it should be. */
enum status postgres_connect_check(const char *url,
                                   struct diag *diag) MUST_CHECK;
/** Begins a connection of its own, see PQconnectStart; with the settings of
 * the client library that the others have. */
PGconn *postgres_connect_start(const char *url);
/** The same, and waits for it; it may be a bad one. PQfinish is owed. */
PGconn *postgres_connect_dial(const char *url);
enum status postgres_connect_open(struct db_session *session,
                                  struct diag *diag) MUST_CHECK;
void postgres_connect_close(struct db_session *session);
/** The settings a transaction needs when the session cannot keep them; NULL
 * when it can. */
const char *postgres_connect_settings(struct db_session *session);

/* --- postgres_wait.c ----------------------------------------------------- */

/**
 * Waits until the socket can be read, or written when `write`. LOST when the
 * server neither answers nor is at work. What runs past the deadline is
 * cancelled.
 */
enum status postgres_wait(struct db_session *session, bool write,
                          struct diag *diag) MUST_CHECK;

/* --- postgres_error.c ---------------------------------------------------- */

/** The status and sentence of a failed result. */
enum status postgres_error(struct db_session *session, const PGresult *result,
                           struct diag *diag);
/** LOST: what libpq says about the connection. */
enum status postgres_error_lost(struct db_session *session, struct diag *diag);
/** UNAVAILABLE: the connection could not be made. */
enum status postgres_error_connect(struct db_session *session,
                                   struct diag *diag);
/** What libpq says about a connection of its own, behind `what`. */
enum status postgres_error_conn(const PGconn *conn, enum status status,
                                const char *what, struct diag *diag);
bool postgres_error_is(const PGresult *result, const char *sqlstate);

/* --- postgres_pipe.c ----------------------------------------------------- */

/** Starts a pipeline; sends BEGIN when the transaction has none yet. */
enum status postgres_pipe_start(struct db_session *session,
                                struct diag *diag) MUST_CHECK;
/** The same, with what was announced in front, as a part that is answered
 * before the rest. */
enum status postgres_pipe_start_ahead(struct db_session *session,
                                      struct diag *diag) MUST_CHECK;
/** Adds a statement of the driver's own, without parameters. */
enum status postgres_pipe_text(struct db_session *session,
                               enum postgres_sent sent, const char *text,
                               struct diag *diag) MUST_CHECK;
/** Notes what was just handed to libpq; `sent_ok` is libpq's answer. */
enum status postgres_pipe_note(struct db_session *session,
                               enum postgres_sent sent, int place, size_t item,
                               int sent_ok, struct diag *diag) MUST_CHECK;
/**
 * Ends the pipeline and reads every answer. On failure *failed is the item
 * whose statement failed, or as it was. `*last` (may be NULL) is the result
 * of the last statement, the caller's to clear; NULL on failure.
 */
enum status postgres_pipe_finish(struct db_session *session, PGresult **last,
                                 size_t *failed, struct diag *diag) MUST_CHECK;

/**
 * Ends the pipeline and reads the answers of its first part, if there is one.
 * The session is in flight then; postgres_pipe_answer reads the rest, as
 * postgres_pipe_finish would have.
 */
enum status postgres_pipe_leave(struct db_session *session,
                                struct diag *diag) MUST_CHECK;
enum status postgres_pipe_answer(struct db_session *session, size_t *failed,
                                 struct diag *diag) MUST_CHECK;

/* --- postgres_stream.c --------------------------------------------------- */

/* What postgres_pipe.c lends to it. */
enum status postgres_pipe_result(struct db_session *session, PGresult **result,
                                 struct diag *diag) MUST_CHECK;
enum status postgres_pipe_judge(struct db_session *session,
                                const struct postgres_command *command,
                                const PGresult *result, struct diag *diag);
enum status postgres_pipe_end(struct db_session *session,
                              struct diag *diag) MUST_CHECK;
/** Reads the answers in front of command `end`; *failed is set when one of
 * them is a failure. */
enum status postgres_pipe_read_to(struct db_session *session, size_t end,
                                  bool *failed, struct diag *diag) MUST_CHECK;
enum status postgres_pipe_read_sync(struct db_session *session,
                                    struct diag *diag) MUST_CHECK;

/** Ends the pipeline; the rows of its last statement are then read one by
 * one. */
enum status postgres_stream_start(struct db_session *session,
                                  struct diag *diag) MUST_CHECK;
/** The same for the first part of what is in flight; false when it cannot be
 * had that way. */
bool postgres_stream_start_ahead(struct db_session *session);
/** The next row, the caller's to clear; NULL at the end. */
enum status postgres_stream_next(struct db_session *session, PGresult **row,
                                 struct diag *diag) MUST_CHECK;
/** Reads what is left, and forgets it. */
void postgres_stream_drain(struct db_session *session);

/* --- postgres_cache.c ---------------------------------------------------- */

/** Sends one statement as part of the pipeline, prepared when the session
 * prepares. `binary` results. */
enum status postgres_cache_send(struct db_session *session,
                                const struct db_sql *sql,
                                const struct postgres_params *params,
                                bool binary, size_t item,
                                struct diag *diag) MUST_CHECK;
/** An answer for the statement of a place came. */
void postgres_cache_answered(struct db_session *session, int place,
                             enum postgres_sent sent, bool good);
/** The server forgot everything, or a statement must be prepared anew. */
void postgres_cache_forget_server(struct db_session *session);
void postgres_cache_forget(struct db_session *session, int place);
void postgres_cache_clear(struct db_session *session);

/* --- postgres_param.c ---------------------------------------------------- */

/** Turns values into the wire's form. PERMANENT names the parameter that
 * cannot be sent. */
enum status postgres_param_encode(struct postgres_params *params,
                                  const struct db_value *values, size_t count,
                                  enum db_origin origin,
                                  struct diag *diag) MUST_CHECK;
/**
 * Turns the rows of a bulk statement into one array for each column, with
 * elements of the types that postgres_param_element gives.
 */
enum status postgres_param_columns(struct postgres_params *params,
                                   const struct db_table *table,
                                   const struct db_value *values, size_t nrows,
                                   const unsigned *elements,
                                   struct diag *diag) MUST_CHECK;
/** The element type in which a column's values travel to a column of type
 * `target`: their own, or text when they differ or would be rounded. */
unsigned postgres_param_element(const struct db_table *table,
                                const struct db_value *values, size_t nrows,
                                size_t column, unsigned target);
/** An element type's name in SQL. */
const char *postgres_param_name(unsigned element);
void postgres_param_free(struct postgres_params *params);

/* --- postgres_guard.c ---------------------------------------------------- */

/** PERMANENT, naming the word, for what a script may not run. Tables of the
 * host (the values of `hosts`, which may be NULL) it may read only. */
enum status postgres_guard_check(struct text sql, enum db_origin origin,
                                 const struct catalog_name *hosts,
                                 struct diag *diag) MUST_CHECK;
/** The same for a statement of a script of DDL. */
enum status postgres_guard_check_script(struct text sql,
                                        const struct catalog_name *hosts,
                                        struct diag *diag) MUST_CHECK;
/** The same for a bulk statement on a table. */
enum status postgres_guard_check_table(const char *table, enum db_origin origin,
                                       const struct catalog_name *hosts,
                                       struct diag *diag) MUST_CHECK;
/** Behind the statement that begins at `at`, before its semicolon. */
const char *postgres_guard_end(const char *at, const char *end);
/** At the first word: behind white space, comments and semicolons. */
const char *postgres_guard_skip(const char *at, const char *end);
/** Gives those parameters of type 0 the type text that stand before IS. */
void postgres_guard_untyped(struct text sql, unsigned *types, size_t count);
/** Appends the text with ?n as $n. */
void postgres_guard_number(struct text sql, struct buffer *out);

/* --- postgres_statement.c ------------------------------------------------ */

/** Adds one statement to the pipeline; with `expect` it fails by itself when
 * it touches another number of rows. */
enum status postgres_statement_send(struct db_session *session,
                                    const struct db_sql *sql,
                                    const struct db_value *params,
                                    size_t nparams, int64_t expect, size_t item,
                                    struct diag *diag) MUST_CHECK;
enum status postgres_statement_execute(struct db_session *session,
                                       const struct db_sql *sql,
                                       const struct db_value *params,
                                       size_t nparams, int64_t *affected,
                                       struct diag *diag) MUST_CHECK;
/** A statement of the driver's own; *result is the caller's to clear. */
enum status postgres_statement_ask(struct db_session *session, const char *text,
                                   const struct db_value *params,
                                   size_t nparams, PGresult **result,
                                   struct diag *diag) MUST_CHECK;
enum status postgres_statement_script(struct db_session *session,
                                      struct text script, enum db_origin origin,
                                      struct diag *diag) MUST_CHECK;
/* A statement that counts its rows fails by casting such a text to a number:
 * the mark, what happened, and PG_COUNT_END. */
#define PG_COUNT_MARK "moontide rows: "
#define PG_COUNT_END  "|"

/* --- postgres_rows.c ----------------------------------------------------- */

/** Takes the result over. */
struct db_rows *postgres_rows_new(PGresult *result);
/** The rows that the session reads one by one. */
struct db_rows *postgres_rows_stream(struct db_session *session);
enum status postgres_rows_query(struct db_session *session,
                                const struct db_sql *sql,
                                const struct db_value *params, size_t nparams,
                                struct db_rows **rows,
                                struct diag *diag) MUST_CHECK;
enum status postgres_rows_next(struct db_rows *rows, bool *more,
                               struct diag *diag) MUST_CHECK;
void postgres_rows_close(struct db_rows *rows);
size_t postgres_rows_columns(const struct db_rows *rows);
const char *postgres_rows_column_name(const struct db_rows *rows,
                                      size_t column);
enum db_type postgres_rows_column_type(const struct db_rows *rows,
                                       size_t column);
int64_t postgres_rows_get_int64(struct db_rows *rows, size_t column);
double postgres_rows_get_double(struct db_rows *rows, size_t column);
bool postgres_rows_get_bool(struct db_rows *rows, size_t column);
struct text postgres_rows_get_text(struct db_rows *rows, size_t column);
int64_t postgres_rows_get_timestamp(struct db_rows *rows, size_t column);
struct uuid postgres_rows_get_uuid(struct db_rows *rows, size_t column);

/* --- postgres_ahead.c ---------------------------------------------------- */

void postgres_ahead_announce(struct db_session *session,
                             const struct db_sql *sql,
                             const struct db_value *params, size_t nparams);
/** Sends what was announced. */
enum status postgres_ahead_send(struct db_session *session,
                                struct diag *diag) MUST_CHECK;
/** Takes over the result of a place; NULL when it failed. */
void postgres_ahead_answered(struct db_session *session, size_t place,
                             PGresult *result);
/** The result of a query that is there already, or NULL. */
PGresult *postgres_ahead_take(struct db_session *session,
                              const struct db_sql *sql,
                              const struct db_value *params, size_t nparams);
/** Whether such a query's rows are the next that will be read; asked once. */
bool postgres_ahead_comes(struct db_session *session, const struct db_sql *sql,
                          const struct db_value *params, size_t nparams);
/** Nobody will read such rows any more. */
void postgres_ahead_none_comes(struct db_session *session);
/** The rows of a place are not read before they are asked for. */
void postgres_ahead_leave(struct db_session *session, size_t place);
/** Nothing goes out with the next commit. */
void postgres_ahead_withdraw(struct db_session *session);
void postgres_ahead_clear(struct db_session *session);

/* --- postgres_bulk.c ----------------------------------------------------- */

/** Begins a pipeline with the queue; more may be sent behind it. On anything
 * but OK there is none. */
enum status postgres_bulk_lead(struct db_session *session,
                               const struct db_queued *queue, size_t count,
                               size_t *failed, struct diag *diag) MUST_CHECK;
/** Ends a pipeline in which something could not be sent: what went before is
 * answered, and its failure counts. */
enum status postgres_bulk_drain(struct db_session *session, enum status unsent,
                                size_t *failed, struct diag *diag) MUST_CHECK;
/** As the driver's slot; DB_END_LEAVE too. */
enum status postgres_bulk_run(struct db_session *session,
                              const struct db_queued *queue, size_t count,
                              enum db_end end, size_t *failed,
                              struct diag *diag) MUST_CHECK;
/** Appends a checked identifier in quotes, folded to lower case as the server
 * folds a bare one; PERMANENT for anything else. */
enum status postgres_bulk_name(struct buffer *out, const char *name,
                               struct diag *diag) MUST_CHECK;

/** The same of a name that was checked already. */
void postgres_bulk_append(struct buffer *out, const char *name);
/** The table's columns in the order of `table`; PERMANENT names a missing
 * one. They live as postgres_columns_of says. */
enum status postgres_bulk_columns(struct db_session *session,
                                  const struct db_table *table,
                                  const struct postgres_column **wants,
                                  struct diag *diag) MUST_CHECK;
/** Whether a value of one type must be cast to be put into a column of the
 * other. */
bool postgres_bulk_needs_cast(unsigned element, unsigned target);

/* --- postgres_lookup.c --------------------------------------------------- */

/** As the driver's slots. */
enum status postgres_lookup_rows(struct db_session *session,
                                 const struct db_table *table,
                                 const struct text *keys, size_t nkeys,
                                 db_lookup_fn fn, void *arg,
                                 struct diag *diag) MUST_CHECK;
enum status postgres_lookup_behind(struct db_session *session,
                                   const struct db_queued *queue, size_t count,
                                   size_t *failed, const struct db_table *table,
                                   const struct text *keys, size_t nkeys,
                                   db_lookup_fn fn, void *arg,
                                   struct diag *diag) MUST_CHECK;

/* --- postgres_columns.c -------------------------------------------------- */

/** The columns of a table that a bare name finds; kept until the session ends
 * or a script ran. PERMANENT when there is no such table. */
enum status postgres_columns_of(struct db_session *session, const char *table,
                                const struct postgres_column **columns,
                                size_t *count, struct diag *diag) MUST_CHECK;
void postgres_columns_forget(struct db_session *session);

/* --- postgres_shape.c ---------------------------------------------------- */

enum status postgres_shape_create(struct db_session *session,
                                  const struct db_shape *shape,
                                  struct diag *diag) MUST_CHECK;
enum status postgres_shape_describe(struct db_session *session,
                                    const char *name, struct arena *arena,
                                    struct db_shape *shape, bool *exists,
                                    struct diag *diag) MUST_CHECK;
void postgres_shape_name(const char *name, struct buffer *out);
void postgres_shape_print(const struct db_shape *shape, struct buffer *out);
const char *postgres_shape_fits(const struct db_shape_column *wanted,
                                const struct db_shape_column *actual);

/* --- postgres_scratch.c -------------------------------------------------- */

/** The driver's slot: makes a schema for a test, or drops the one of `url`. */
enum status postgres_scratch(const char *url, struct buffer *out,
                             struct diag *diag) MUST_CHECK;

#endif
