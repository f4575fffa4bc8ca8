/*
 * Database -- one connection to one database, whatever its dialect.
 *
 * This is the only way the host reaches a database. The core of it (db/db.c)
 * owns the transaction's state: depth of savepoints, the queue of statements
 * that have not gone out, and the sticky failure. A driver (db/driver.h) does
 * the rest. Nothing above this folder knows a dialect's name or error codes.
 *
 * Failure is sticky: after a failed statement every call of the transaction
 * returns that same failure, on every dialect, until db_rollback, or until
 * db_rollback_to takes the transaction back to a savepoint set before it.
 *
 * Statuses of every call below: OK; CONFLICT (run the transaction again);
 * LOST (the connection is gone: db_reopen; a COMMIT in flight is unknown);
 * UNIQUE (diag.constraint); UNAVAILABLE (the database cannot do its work now:
 * full disk, read-only or damaged file; no statement is to blame); PERMANENT
 * (all else, with the server's message);
 * FAILED (the statement ran past db_deadline).
 */
#ifndef HOST_DB_DB_H
#define HOST_DB_DB_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"
#include "db/value.h"

struct catalog_name; /* db/catalog.h */
struct db;           /* db/db.c */
struct db_rows;      /* an open result */

struct db_options {
    const char *url;      /* sqlite:PATH, postgresql://..., mysql://... */
    int64_t busy_timeout; /* microseconds to wait for a lock */
    bool create;          /* SQLite: make the file when it is missing */
    bool read_only;       /* refuse every write */
    /** Tables (the values) that scripts may read but not write, ended by a
     * NULL value; NULL: none. Borrowed until db_close. */
    const struct catalog_name *host_tables;
    bool no_prepare; /* a pooler stands between: keep no statements */
    /** Microseconds after which the server ends a session that is silent in a
     * transaction, so that its locks go; 0: the driver's own. */
    int64_t silence;
};

/** Where a statement comes from: scripts may not touch session or tables'
 * existence (PRAGMA, ATTACH, BEGIN, SET, CREATE ... are refused). */
enum db_origin {
    DB_HOST,
    DB_PERSON, /* a person's own, in a test: anything goes in and out */
    DB_SCRIPT,
    DB_SCRIPT_READ, /* a script's statement that may only read */
};

/** A statement's text in the dialect's own parameter style. The text must
 * outlive the connection's use of it (catalog, declaration). */
struct db_sql {
    struct text text;
    uint64_t hash; /* of text; finds the prepared statement */
    enum db_origin origin;
    /** Its rows may be large together: a driver keeps one at a time, and until
     * the result is closed nothing else is asked. */
    bool large;
};

struct db_sql db_sql_make(struct text text, enum db_origin origin);

/** Abilities the core may ask about instead of comparing names. */
enum db_can {
    DB_CAN_NOTIFY = 1 << 0,     /* pushes wake-ups */
    DB_CAN_SEQUENCE = 1 << 1,   /* positions come from a sequence: gaps */
    DB_CAN_MANY_HOSTS = 1 << 2, /* several processes write side by side */
    DB_CAN_LEAVE = 1 << 5, /* db_commit_begin does not wait, or costs nothing */
    DB_CAN_MERGE = 1 << 3, /* an ordered UNION ALL merges its branches' indexes
                            * and stops at its limit */
    DB_SENDS_ALL = 1 << 4, /* rows that nobody reads travel all the same */
    DB_SEES_EARLIER = 1 << 6, /* what a statement that waited for a lock tells
                               * of other rows was so before it waited */
};

/** Opens a connection. UNAVAILABLE when it cannot be reached, BUSY when it is a
 * file that another program has locked, CONFIG for a bad URL, PERMANENT for a
 * file that is no database. */
enum status db_open(const struct db_options *options, struct db **db,
                    struct diag *diag) MUST_CHECK;
void db_close(struct db *db); /* NULL is allowed; rolls back */
/** After LOST: a new session with the same settings; statements prepared
 * again. An in-memory database keeps its content. UNAVAILABLE also for a file
 * that is locked: it is to be called again. */
enum status db_reopen(struct db *db, struct diag *diag) MUST_CHECK;

/** For tests: makes a new, empty database on the server of the URL and appends
 * its URL to `scratch`; a database that is a file is its own. */
enum status db_scratch(const char *url, struct buffer *scratch,
                       struct diag *diag) MUST_CHECK;
/** Drops what db_scratch has made, and nothing else. */
enum status db_scratch_drop(const char *url, struct diag *diag) MUST_CHECK;

const char *db_dialect(const struct db *db);   /* the folder under sql/ */
unsigned db_abilities(const struct db *db);    /* enum db_can bits */
const char *db_url_shown(const struct db *db); /* without the password */
/** Appends a sentence when another program makes the database's files grow
 * without need, with what to do; nothing otherwise. Outside of a transaction it
 * cuts first what can be cut. Waits for nobody; costs no round trip. */
void db_burden(struct db *db, struct buffer *out);
/** Driver-made counter of round trips (SQLite: statements run). */
int64_t db_round_trips(const struct db *db);
/** A statement that still runs at `at_us` (clock_monotonic) is interrupted and
 * FAILED, so that a script's endless query ends. 0 takes the limit away. */
void db_deadline(struct db *db, int64_t at_us);

/* --- transactions ------------------------------------------------------- */

/** Begins a transaction that may write (SQLite: BEGIN IMMEDIATE). */
enum status db_begin(struct db *db, struct diag *diag) MUST_CHECK;
/** Begins one that only reads: a stable view, no writer's lock. */
enum status db_begin_read(struct db *db, struct diag *diag) MUST_CHECK;
/**
 * Begins what creates or changes tables, with no other program doing the same:
 * a transaction that writes, or, where each statement of DDL commits by
 * itself, the database's lock for it. There a failure keeps what was done
 * before it, so every step must be one that can be done again. Inside of any
 * other transaction db_script and db_create_table may be refused. CONFLICT
 * when another program has the lock. Ends with db_commit or db_rollback.
 */
enum status db_begin_schema(struct db *db, struct diag *diag) MUST_CHECK;
/** Sends the queue and commits. On failure the transaction is over; LOST
 * means that the outcome is unknown. *failed_tag as in db_flush. */
enum status db_commit(struct db *db, int64_t *failed_tag,
                      struct diag *diag) MUST_CHECK;
/**
 * The same, but may come back before the database has answered; then the
 * transaction is over, and db_commit_end tells what became of it. What was
 * announced is there by then, so that the caller has it while the database
 * still writes. Another transaction may begin meanwhile; what of it must go out
 * waits for the answer, and gets CONFLICT when that was a failure. On anything
 * but OK there is no end to be asked for.
 */
enum status db_commit_begin(struct db *db, struct diag *diag) MUST_CHECK;
/** The outcome, as of db_commit; owed before the next db_commit_begin. */
enum status db_commit_end(struct db *db, int64_t *failed_tag,
                          struct diag *diag) MUST_CHECK;
/** Cannot fail: a connection that cannot roll back is dropped, and the next
 * call returns LOST. Without a transaction it does nothing. */
void db_rollback(struct db *db);
bool db_in_transaction(const struct db *db);
/** The table that a statement since the transaction began did not find, by the
 * server's word, whatever became of that failure; "" when there is none. */
const char *db_missing_table(const struct db *db);
/** Tag of the queued statement that doomed the transaction, whichever call
 * sent it; -1 when there is none or it cannot be told. */
int64_t db_failed_tag(const struct db *db);

/** Savepoints nest. The queue is sent first. */
enum status db_savepoint(struct db *db, struct diag *diag) MUST_CHECK;
/** Undoes everything since the innermost savepoint, drops the queue's newer
 * part, clears a failure that came after it, and ends the savepoint. Fails
 * when the whole transaction is gone. Once this or db_release has failed, only
 * db_rollback ends the transaction: what is left of it is not known. */
enum status db_rollback_to(struct db *db, struct diag *diag) MUST_CHECK;
/** Number of open savepoints. */
int db_savepoints(const struct db *db);
/** db_rollback_to, or db_release, until `savepoints` are left, however many a
 * script's code has left open. */
enum status db_rollback_to_depth(struct db *db, int savepoints,
                                 struct diag *diag) MUST_CHECK;
enum status db_release_to_depth(struct db *db, int savepoints,
                                struct diag *diag) MUST_CHECK;
/** Keeps what was done since the innermost savepoint and ends it. */
enum status db_release(struct db *db, struct diag *diag) MUST_CHECK;

/* --- statements: a round trip each -------------------------------------- */

/** Runs one statement; `affected` may be NULL. The queue is sent first. */
enum status db_execute(struct db *db, const struct db_sql *sql,
                       const struct db_value *params, size_t nparams,
                       int64_t *affected, struct diag *diag) MUST_CHECK;

/** Opens a result; db_rows_close is owed when it returns OK. The queue is
 * sent first. Several results may be open at once. Parameters are copied. A
 * result ends with its transaction; it is closed before its connection. */
enum status db_query(struct db *db, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams,
                     struct db_rows **rows, struct diag *diag) MUST_CHECK;
/**
 * Announces a db_query that will follow the next commit, outside of a
 * transaction: a driver with a pipeline sends it along, and the query finds its
 * result there. A query that then differs runs as ever, and so does one whose
 * rows may have changed since: only for rows that never do. What the parameters
 * point to must live until the query.
 */
void db_announce(struct db *db, const struct db_sql *sql,
                 const struct db_value *params, size_t nparams);
/** Takes it all back, for what the parameters point to is going to end.
 * Outside of a transaction, with no commit to be asked about. */
void db_withdraw(struct db *db);

/** Moves to the next row; *more is false at the end. A value of the row
 * before that could not be read as asked is reported here too; when the result
 * is closed instead, the transaction is doomed with that error. */
enum status db_next(struct db_rows *rows, bool *more,
                    struct diag *diag) MUST_CHECK;
void db_rows_close(struct db_rows *rows); /* NULL is allowed */

/** Takes one row; anything but OK ends the reading. */
typedef enum status (*db_row_fn)(void *arg, struct db_rows *row,
                                 struct diag *diag);

/** Runs a query and gives each of its rows to `fn`. */
enum status db_rows_each(struct db *db, const struct db_sql *sql,
                         const struct db_value *params, size_t nparams,
                         db_row_fn fn, void *arg, struct diag *diag) MUST_CHECK;

size_t db_columns(const struct db_rows *rows);
const char *db_column_name(const struct db_rows *rows, size_t column);
/** Type of this row's value: NULL, INT64, DOUBLE, TEXT or BYTES (SQLite);
 * also BOOL, TIMESTAMP, UUID where the engine knows them. */
enum db_type db_column_type(const struct db_rows *rows, size_t column);
/* Typed reads. A value of another type gives a zero and makes the next
 * db_next fail, naming the column. Text is valid until the next db_next. */
bool db_is_null(const struct db_rows *rows, size_t column);
int64_t db_get_int64(struct db_rows *rows, size_t column);
double db_get_double(struct db_rows *rows, size_t column);
bool db_get_bool(struct db_rows *rows, size_t column);
struct text db_get_text(struct db_rows *rows, size_t column); /* and bytes */
int64_t db_get_timestamp(struct db_rows *rows, size_t column);
struct uuid db_get_uuid(struct db_rows *rows, size_t column);

/** Runs a query that gives at most one row with one int64; *found says
 * whether there was one that is not NULL. */
enum status db_query_int64(struct db *db, const struct db_sql *sql,
                           const struct db_value *params, size_t nparams,
                           int64_t *value, bool *found,
                           struct diag *diag) MUST_CHECK;

/* --- the queue: one batch, flushed together ------------------------------ */

#define DB_ANY_ROWS INT64_C(-1)

/**
 * Queues one statement; it goes out with the next flush, query, execute,
 * savepoint or commit, in order. Parameters are copied. When `expect` is not
 * DB_ANY_ROWS and the statement touches another number of rows, that is a
 * CONFLICT and nothing commits. A SELECT touches none; with DB_SEES_EARLIER one
 * of the host may expect to give some number of rows. `tag` comes back when it
 * fails.
 */
enum status db_queue(struct db *db, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams,
                     int64_t expect, int64_t tag, struct diag *diag) MUST_CHECK;

/** What a column does in a bulk statement. */
enum db_role {
    DB_KEY,   /* identifies the row */
    DB_GUARD, /* UPDATE, DELETE: must still hold this value */
    DB_SET,   /* INSERT, UPSERT, UPDATE: the new value */
    DB_ADD,   /* UPSERT: stored (NULL as 0) plus the value; INSERT: value */
};

struct db_column {
    const char *name;
    enum db_type type;
    enum db_role role;
};

struct db_table {
    const char *name;
    const struct db_column *columns;
    size_t ncolumns;
    enum db_origin origin;
};

enum db_bulk {
    DB_INSERT,
    DB_UPSERT, /* insert, or update the row that has the same key */
    DB_UPDATE, /* each row must match key and guards, else CONFLICT */
    DB_DELETE, /* the same */
};

/**
 * Queues `nrows` rows, row-major, `ncolumns` values each (DB_NULL allowed in
 * DB_SET and DB_ADD columns). No two rows have the same key. `table` and
 * `values` are borrowed until the queue was sent.
 */
enum status db_queue_bulk(struct db *db, enum db_bulk what,
                          const struct db_table *table,
                          const struct db_value *values, size_t nrows,
                          int64_t tag, struct diag *diag) MUST_CHECK;

/** Sends the queue. On failure *failed_tag (may be NULL) is the tag of the
 * statement that failed, -1 when it cannot be told. */
enum status db_flush(struct db *db, int64_t *failed_tag,
                     struct diag *diag) MUST_CHECK;

/** A place in the queue, to take later statements back. */
size_t db_queue_mark(const struct db *db);
/** Forgets what was queued after `mark`; they must not have been sent. */
void db_queue_drop(struct db *db, size_t mark);
/** False once anything after `mark` was sent, queued or run at once (a query
 * of a script counts, it may write): then only a savepoint can undo. */
bool db_queue_holds(const struct db *db, size_t mark);

/** Called once for each key that has a row. `index` is the key's place in
 * `keys`; the row's columns are the table's non-key columns in order. */
typedef enum status (*db_lookup_fn)(void *arg, size_t index,
                                    struct db_rows *row, struct diag *diag);

/**
 * Reads the rows of `nkeys` distinct keys: the table has exactly one DB_KEY
 * column of type TEXT or UUID (then `keys` are the text form). Set-based: a
 * constant number of round trips. The queue is sent first, with a pipeline in
 * the same one; `fn` queues nothing.
 */
enum status db_lookup(struct db *db, const struct db_table *table,
                      const struct text *keys, size_t nkeys, db_lookup_fn fn,
                      void *arg, struct diag *diag) MUST_CHECK;

/** The database's clock. */
enum status db_now(struct db *db, int64_t *now_us,
                   struct diag *diag) MUST_CHECK;
/** About the same, within the time of a round trip: the server is asked once in
 * a few seconds at most, and in between the time that has passed is added. It
 * does not follow steps of this machine's clock. */
enum status db_clock(struct db *db, int64_t *now_us,
                     struct diag *diag) MUST_CHECK;
/** The same without asking. False when it never was. */
bool db_clock_known(const struct db *db, int64_t *now_us);

/** Runs a script of several statements (DDL), outside of a transaction where
 * the engine commits DDL by itself. */
enum status db_script(struct db *db, struct text script, enum db_origin origin,
                      struct diag *diag) MUST_CHECK;

#endif
