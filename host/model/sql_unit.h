/*
 * SQL unit -- one unit's call of user code whose SQL is undone when it fails:
 * statements that were only queued are taken back, and for handlers that run
 * some at once a savepoint is set, from the first time one was seen to.
 */
#ifndef HOST_MODEL_SQL_UNIT_H
#define HOST_MODEL_SQL_UNIT_H

#include "consumer/applier.h"
#include "model/handler_sql.h"

struct sql_unit {
    struct handler_sql *sql;
    bool takes_savepoints; /* false at first; kept by sql_unit_run */
};

/** Calls the code. FAILED with *failure is the handler's fault; anything else
 * the database's. */
typedef enum status (*sql_unit_fn)(void *arg, struct failure *failure,
                                   struct diag *diag);

/** Runs the call and judges it. A status other than OK is the database's. */
enum status sql_unit_run(struct sql_unit *unit, struct db *db, sql_unit_fn call,
                         void *arg, enum apply_verdict *verdict,
                         struct failure *failure, struct diag *diag) MUST_CHECK;

#endif
