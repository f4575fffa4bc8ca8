/*
 * Driver -- what one dialect has to provide. A driver is a constant table with
 * every slot filled but for those that may be NULL; db/db.c is its only caller
 * and keeps transaction depth, queue and sticky failure, so a driver keeps only
 * its session.
 *
 * The queue reaches a driver as an array (struct db_queued), at once: a driver
 * with a pipeline sends it together with whatever follows.
 */
#ifndef HOST_DB_DRIVER_H
#define HOST_DB_DRIVER_H

#include "db/db.h"
#include "db/shape.h"

struct db_session;    /* each driver's own */
struct listener_kind; /* db/listener_kind.h */

struct db_queued {
    bool bulk;
    enum db_bulk what; /* bulk */
    const struct db_table *table;
    const struct db_value *values; /* rows, or the statement's parameters */
    size_t count;                  /* rows, or number of parameters */
    struct db_sql sql;             /* not bulk */
    int64_t expect;
    int64_t tag;
};

enum db_end {
    DB_END_NONE,
    DB_END_COMMIT,
    DB_END_LEAVE, /* COMMIT, whose answer `answer` waits for */
};

struct db_driver {
    const char *name; /* also the folder under sql/ */
    unsigned can;
    /** True if this driver takes the URL. */
    bool (*accepts)(const char *url);

    /** Makes an empty database for a test on the server of the URL and appends
     * its URL; `out` NULL: drops the one of the URL. NULL where a database is a
     * file. */
    enum status (*scratch)(const char *url, struct buffer *out,
                           struct diag *diag);

    enum status (*connect)(const struct db_options *options,
                           struct db_session **session, struct diag *diag);
    void (*disconnect)(struct db_session *session);
    enum status (*reconnect)(struct db_session *session, struct diag *diag);

    enum status (*begin)(struct db_session *session, bool write,
                         struct diag *diag);
    /** Where DDL commits by itself: takes the database's lock for it, which
     * run with DB_END_COMMIT and rollback give back, and lets script and
     * create_table run until then. NULL: begin with `write` does it all. */
    enum status (*begin_schema)(struct db_session *session, struct diag *diag);
    /** Runs the queue in order, then commits when `end` says so. When a
     * statement fails the rest is not run and *failed is its index. */
    enum status (*run)(struct db_session *session,
                       const struct db_queued *queue, size_t count,
                       enum db_end end, size_t *failed, struct diag *diag);
    /** Whether `run` with DB_END_LEAVE may be used now; NULL: never. */
    bool (*leaves)(const struct db_session *session);
    /** After it: as `run` would have ended. What was announced is there before
     * that. Nothing else reaches the database in between. */
    enum status (*answer)(struct db_session *session, size_t *failed,
                          struct diag *diag);
    /** A query that was announced and is there already: needs no connection.
     * NULL when it is not. */
    struct db_rows *(*announced)(struct db_session *session,
                                 const struct db_sql *sql,
                                 const struct db_value *params, size_t nparams);
    /** False when the session is unusable and must be reconnected. */
    bool (*rollback)(struct db_session *session);
    /** `depth` (1..) names the savepoint. */
    enum status (*savepoint)(struct db_session *session, int depth,
                             struct diag *diag);
    enum status (*rollback_to)(struct db_session *session, int depth,
                               struct diag *diag);
    enum status (*release)(struct db_session *session, int depth,
                           struct diag *diag);

    enum status (*execute)(struct db_session *session, const struct db_sql *sql,
                           const struct db_value *params, size_t nparams,
                           int64_t *affected, struct diag *diag);
    enum status (*query)(struct db_session *session, const struct db_sql *sql,
                         const struct db_value *params, size_t nparams,
                         struct db_rows **rows, struct diag *diag);
    /** NULL: databases of this kind tell nobody that something was written. */
    const struct listener_kind *listener;
    /** NULL without a pipeline: see db_announce. */
    void (*announce)(struct db_session *session, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams);
    /** With it: forgets all that was announced. Nothing is in flight. */
    void (*withdraw)(struct db_session *session);
    enum status (*lookup)(struct db_session *session,
                          const struct db_table *table, const struct text *keys,
                          size_t nkeys, db_lookup_fn fn, void *arg,
                          struct diag *diag);
    /** NULL without a pipeline. `run` with DB_END_NONE, then `lookup`, in one
     * round trip. The queue is not empty. */
    enum status (*lookup_behind)(struct db_session *session,
                                 const struct db_queued *queue, size_t count,
                                 size_t *failed, const struct db_table *table,
                                 const struct text *keys, size_t nkeys,
                                 db_lookup_fn fn, void *arg, struct diag *diag);
    enum status (*script)(struct db_session *session, struct text script,
                          enum db_origin origin, struct diag *diag);
    enum status (*now)(struct db_session *session, int64_t *now_us,
                       struct diag *diag);
    /** Outside of a transaction: gives back what files have grown by, as far
     * as that is not in use. Appends a sentence when another program keeps much
     * in use. Asks no server. NULL: there are no such files. */
    void (*burden)(struct db_session *session, struct buffer *out);
    int64_t (*round_trips)(const struct db_session *session);
    void (*deadline)(struct db_session *session, int64_t at_us);

    enum status (*create_table)(struct db_session *session,
                                const struct db_shape *shape,
                                struct diag *diag);
    enum status (*describe_table)(struct db_session *session, const char *name,
                                  struct arena *arena, struct db_shape *shape,
                                  bool *exists, struct diag *diag);
    /** Appends a table's or column's name as create_table made it. */
    void (*print_name)(const char *name, struct buffer *out);
    /** Appends the CREATE statements of a shape to `out`. */
    void (*print_table)(const struct db_shape *shape, struct buffer *out);
    /** NULL when `actual` holds every value of `wanted`, else what it is. */
    const char *(*column_fits)(const struct db_shape_column *wanted,
                               const struct db_shape_column *actual);

    /* An open result; struct db_rows starts with a pointer to its driver. */
    enum status (*next)(struct db_rows *rows, bool *more, struct diag *diag);
    void (*rows_close)(struct db_rows *rows);
    size_t (*columns)(const struct db_rows *rows);
    const char *(*column_name)(const struct db_rows *rows, size_t column);
    enum db_type (*column_type)(const struct db_rows *rows, size_t column);
    int64_t (*get_int64)(struct db_rows *rows, size_t column);
    double (*get_double)(struct db_rows *rows, size_t column);
    bool (*get_bool)(struct db_rows *rows, size_t column);
    struct text (*get_text)(struct db_rows *rows, size_t column);
    int64_t (*get_timestamp)(struct db_rows *rows, size_t column);
    struct uuid (*get_uuid)(struct db_rows *rows, size_t column);
};

/* What every driver's result begins with. A getter that meets a value of
 * another type calls db_rows_mismatch; db/db.c reports it. */
struct db_rows {
    const struct db_driver *driver;
    struct db *db; /* set by db/db.c: a failing row dooms its transaction */
    size_t hidden; /* columns at the end that the caller does not see */
    bool mismatch;
    size_t mismatch_column;
    const char *mismatch_wanted; /* "an integer" */
};

/** Remembers the first value of the row that was not what was asked for. */
static inline void db_rows_mismatch(struct db_rows *rows, size_t column,
                                    const char *wanted)
{
    if (rows->mismatch)
        return;
    rows->mismatch = true;
    rows->mismatch_column = column;
    rows->mismatch_wanted = wanted;
}

/** PERMANENT, naming column and type, what is there, and which row it is. */
enum status db_rows_mismatch_error(struct db_rows *rows, struct diag *diag);

extern const struct db_driver db_sqlite_driver;
extern const struct db_driver db_postgres_driver;
extern const struct db_driver db_mysql_driver;

#endif
