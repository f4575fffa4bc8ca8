/*
 * SQLite -- what the files of the SQLite driver share: the session, and the
 * few functions that cross their borders. Nobody outside of host/db/sqlite*.c
 * includes this.
 *
 * sqlite.c            session, transactions, the driver's table
 * sqlite_file.c       opening the file, its settings, noticing its loss
 * sqlite_error.c      SQLite's codes become the host's statuses
 * sqlite_cache.c      prepared statements, what scripts may prepare
 * sqlite_statement.c  parameters, execute, scripts of statements
 * sqlite_rows.c       results and their values
 * sqlite_bulk.c       queue, bulk statements, lookup
 * sqlite_head.c       the beginning of a long value, without the rest of it
 * sqlite_shape.c      tables of a shape
 * sqlite_listener.c   hears that the file was written
 */
#ifndef HOST_DB_SQLITE_H
#define HOST_DB_SQLITE_H

#include "base/buffer.h"
#include "db/driver.h"

#include <sqlite3.h>
#include <sys/types.h>

#define SQLITE_CACHE_MAX     256 /* prepared statements kept */
#define SQLITE_CACHE_BUCKETS 512 /* a power of two */

struct sqlite_statement {
    sqlite3_stmt *handle;
    struct text text; /* own copy: `text` of a script does not live on */
    uint64_t hash;
    enum db_origin origin;
    bool cached; /* false: gone when it is released */
    bool in_use;
    struct sqlite_statement *next;  /* same bucket */
    struct sqlite_statement *newer; /* order of last use */
    struct sqlite_statement *older;
};

struct sqlite_cache {
    struct sqlite_statement *buckets[SQLITE_CACHE_BUCKETS];
    struct sqlite_statement *newest;
    struct sqlite_statement *oldest;
    size_t count;
};

struct sqlite_rows {
    struct db_rows base;
    struct db_session *session;
    struct sqlite_statement *statement; /* NULL: ended with its transaction */
    struct sqlite_rows *next;           /* list of open results */
    bool ended;                         /* the last row was passed */
};

struct db_session {
    sqlite3 *handle;
    char *path; /* full path; ":memory:" */
    bool memory;
    bool read_only;
    int64_t busy_timeout;
    int64_t busy_until; /* clock_monotonic, of the wait under way */

    bool in_transaction;   /* as the core believes; SQLite may have ended it */
    bool writes;           /* begun with db_begin */
    enum db_origin origin; /* of the statement being prepared or run */
    bool creates;          /* a script of DDL: may create tables */
    const struct catalog_name *host_tables; /* scripts may not write them */
    const char *denied; /* what the authorizer refused, or NULL */

    int64_t deadline; /* clock_monotonic; 0: none */

    dev_t wal_device; /* identity of the write-ahead log, 0: none */
    ino_t inode;      /* of the file, 0 when unknown */
    dev_t device;
    ino_t wal_inode;

    struct sqlite_cache cache;
    struct sqlite_rows *open; /* results that hold a statement */
    struct buffer text;       /* statements built here */
    struct buffer arrays;     /* JSON of array parameters */
    int64_t round_trips;
};

/* --- sqlite.c ------------------------------------------------------------ */

/** The path in a URL; NULL: the database is in memory. */
const char *sqlite_file_of(const char *url);

/* --- sqlite_file.c ------------------------------------------------------- */

enum status sqlite_file_open(struct db_session *session, bool create,
                             struct diag *diag) MUST_CHECK;
/** The host's settings; what is wrong with the file shows here. CONFLICT when
 * it is locked. */
enum status sqlite_file_configure(struct db_session *session,
                                  struct diag *diag) MUST_CHECK;
/** False when another file lies at the path than the one that was opened. */
bool sqlite_file_is_same(const struct db_session *session);
/** UNAVAILABLE when file or log were moved, deleted or replaced. */
enum status sqlite_file_check(const struct db_session *session,
                              struct diag *diag) MUST_CHECK;

/** Of a log that has grown far beyond its limit, and of who keeps it so. */
void sqlite_file_burden(struct db_session *session, struct buffer *out);

/* --- sqlite_error.c ------------------------------------------------------ */

/** Turns the failure of the last call into a status and a sentence. */
enum status sqlite_error(struct db_session *session, int code,
                         struct diag *diag);
/** The same for a connection that could not be opened. */
enum status sqlite_error_open(const char *path, int code, int system_error,
                              struct diag *diag);

/* --- sqlite_cache.c ------------------------------------------------------ */

/** Finds or prepares. Every statement taken is given back exactly once. */
enum status sqlite_cache_take(struct db_session *session,
                              const struct db_sql *sql,
                              struct sqlite_statement **statement,
                              struct diag *diag) MUST_CHECK;
/** Resets it, so that no snapshot and no borrowed parameter stays behind. */
void sqlite_cache_give(struct db_session *session,
                       struct sqlite_statement *statement);
/** Finalizes all; statements in use are left to their owners' give. */
void sqlite_cache_clear(struct db_session *session);
/** For sqlite3_set_authorizer; `arg` is the session. */
int sqlite_cache_authorize(void *arg, int action, const char *first,
                           const char *second, const char *database,
                           const char *trigger);
/** PERMANENT: what was refused to a script, and that it was. */
enum status sqlite_cache_denied(struct db_session *session, struct diag *diag);

/* --- sqlite_statement.c -------------------------------------------------- */

/** Binds parameter `index` (1..). `copy` when it must outlive the caller. */
enum status sqlite_statement_bind(struct db_session *session,
                                  struct sqlite_statement *statement, int index,
                                  const struct db_value *value, bool copy,
                                  struct diag *diag) MUST_CHECK;
/** Checks the number of parameters and binds them. */
enum status sqlite_statement_bind_all(struct db_session *session,
                                      struct sqlite_statement *statement,
                                      const struct db_value *params,
                                      size_t nparams, bool copy,
                                      struct diag *diag) MUST_CHECK;
enum status sqlite_statement_execute(struct db_session *session,
                                     const struct db_sql *sql,
                                     const struct db_value *params,
                                     size_t nparams, int64_t *affected,
                                     struct diag *diag) MUST_CHECK;
/** Runs a statement of the host's without parameters. */
enum status sqlite_statement_run(struct db_session *session, const char *text,
                                 struct diag *diag) MUST_CHECK;
enum status sqlite_statement_script(struct db_session *session,
                                    struct text script, enum db_origin origin,
                                    struct diag *diag) MUST_CHECK;

/* --- sqlite_rows.c ------------------------------------------------------- */

enum status sqlite_rows_query(struct db_session *session,
                              const struct db_sql *sql,
                              const struct db_value *params, size_t nparams,
                              struct db_rows **rows,
                              struct diag *diag) MUST_CHECK;
enum status sqlite_rows_next(struct db_rows *rows, bool *more,
                             struct diag *diag) MUST_CHECK;
void sqlite_rows_close(struct db_rows *rows);
/** Ends every open result; their owners still close them. */
void sqlite_rows_end_all(struct db_session *session);
size_t sqlite_rows_columns(const struct db_rows *rows);
const char *sqlite_rows_column_name(const struct db_rows *rows, size_t column);
enum db_type sqlite_rows_column_type(const struct db_rows *rows, size_t column);
int64_t sqlite_rows_get_int64(struct db_rows *rows, size_t column);
double sqlite_rows_get_double(struct db_rows *rows, size_t column);
bool sqlite_rows_get_bool(struct db_rows *rows, size_t column);
struct text sqlite_rows_get_text(struct db_rows *rows, size_t column);
int64_t sqlite_rows_get_timestamp(struct db_rows *rows, size_t column);
struct uuid sqlite_rows_get_uuid(struct db_rows *rows, size_t column);

/* --- sqlite_bulk.c ------------------------------------------------------- */

/** Runs queued statements in order; *failed is the index of the bad one. */
enum status sqlite_bulk_run(struct db_session *session,
                            const struct db_queued *queue, size_t count,
                            size_t *failed, struct diag *diag) MUST_CHECK;
enum status sqlite_bulk_lookup(struct db_session *session,
                               const struct db_table *table,
                               const struct text *keys, size_t nkeys,
                               db_lookup_fn fn, void *arg,
                               struct diag *diag) MUST_CHECK;

/* --- sqlite_shape.c ------------------------------------------------------ */

enum status sqlite_shape_create(struct db_session *session,
                                const struct db_shape *shape,
                                struct diag *diag) MUST_CHECK;
enum status sqlite_shape_describe(struct db_session *session, const char *name,
                                  struct arena *arena, struct db_shape *shape,
                                  bool *exists, struct diag *diag) MUST_CHECK;
void sqlite_shape_name(const char *name, struct buffer *out);
void sqlite_shape_print(const struct db_shape *shape, struct buffer *out);
const char *sqlite_shape_fits(const struct db_shape_column *wanted,
                              const struct db_shape_column *actual);

/* --- sqlite_head.c ----------------------------------------------------------
 */

#define SQLITE_HEAD "moontide_head"

/** substr() reads the whole value to give its beginning; this function of SQL
 * does not. SQLite's code. */
int sqlite_head_register(sqlite3 *handle) MUST_CHECK;

#endif
