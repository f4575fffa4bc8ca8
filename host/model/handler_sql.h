/*
 * Handler SQL -- what ctx:query, execute, update and upsert do: statements of
 * one batch, queued and sent together, with an undo for the call that failed.
 *
 * Upserts of one table and one set of columns are merged per key until another
 * kind of statement comes between, so a batch writes each row once. Program
 * order is kept between statements of different kinds. Script layer calls the
 * first group; model/sql_projection.c the second.
 */
#ifndef HOST_MODEL_HANDLER_SQL_H
#define HOST_MODEL_HANDLER_SQL_H

#include "db/db.h"

struct handler_sql;

/** A value of ctx:upsert: to set, or to add (moontide.add). */
struct handler_value {
    const char *column;
    bool add;
    struct db_value value;
};

/** Appends a table's or column's name as the database takes it. */
void handler_sql_print_name(const struct handler_sql *sql, const char *name,
                            struct buffer *out);

/** May the call write? Projections with state may only query. */
bool handler_sql_may_write(const struct handler_sql *sql);

/** Statements that run at once are interrupted (FAILED) at this time of
 * clock_monotonic; 0: never. The hook that watches a script does not run while
 * the database works. */
void handler_sql_deadline(struct handler_sql *sql, int64_t at_us);

/** `where` is "script:line" of the caller, for the error; copied. */
enum status handler_sql_execute(struct handler_sql *sql,
                                const struct db_sql *statement,
                                const struct db_value *params, size_t nparams,
                                const char *where,
                                struct diag *diag) MUST_CHECK;
enum status handler_sql_update(struct handler_sql *sql,
                               const struct db_sql *statement,
                               const struct db_value *params, size_t nparams,
                               int64_t *affected, struct diag *diag) MUST_CHECK;
enum status handler_sql_query(struct handler_sql *sql,
                              const struct db_sql *statement,
                              const struct db_value *params, size_t nparams,
                              struct db_rows **rows,
                              struct diag *diag) MUST_CHECK;
/** `keys` and `values` are sorted by column name by the caller, so that the
 * same upsert always has the same shape. INVALID: bad name, key is NULL, no
 * key, sum out of range. */
/** Writes "script:line" of the caller; asked for only when it is kept. */
typedef void (*handler_where_fn)(void *arg, char *out, size_t size);
enum status handler_sql_upsert(struct handler_sql *sql, const char *table,
                               const struct handler_value *keys, size_t nkeys,
                               const struct handler_value *values,
                               size_t nvalues, handler_where_fn where,
                               void *arg, struct diag *diag) MUST_CHECK;
/** Something else is about to write at once on the call's behalf: sends what
 * was queued before, as handler_sql_update does. Then, with what came of it: a
 * failure is the call's whatever its script does. */
enum status handler_sql_other(struct handler_sql *sql,
                              struct diag *diag) MUST_CHECK;
enum status handler_sql_other_done(struct handler_sql *sql,
                                   enum status status) MUST_CHECK;
/** ctx:try: savepoint, then release or roll back to it. */
enum status handler_sql_try(struct handler_sql *sql,
                            struct diag *diag) MUST_CHECK;
enum status handler_sql_try_end(struct handler_sql *sql, bool keep,
                                struct diag *diag) MUST_CHECK;

struct handler_sql *handler_sql_new(struct db *db);
void handler_sql_free(struct handler_sql *sql);
void handler_sql_batch_begin(struct handler_sql *sql, bool may_write);
/** Starts a call; what it queues can be undone until the next call. */
void handler_sql_call_begin(struct handler_sql *sql);
/** Takes back what the call queued. False when it had already written in the
 * database, or the transaction has failed: then only a savepoint or a
 * rollback helps. */
bool handler_sql_call_undo(struct handler_sql *sql);
/** After a rollback to a savepoint that was set before the call: what it
 * queued is gone, and the transaction lives. */
void handler_sql_call_forget(struct handler_sql *sql);
/** Whether the call ran a statement in the database at once. */
bool handler_sql_call_ran(const struct handler_sql *sql);
/** Hands everything to the connection's queue; tags are places in the batch. */
enum status handler_sql_send(struct handler_sql *sql,
                             struct diag *diag) MUST_CHECK;
/** "script:line" of what was sent under a tag, or "". */
const char *handler_sql_where(const struct handler_sql *sql, int64_t tag);

#endif
