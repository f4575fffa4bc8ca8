#include "model/sql_unit.h"

enum status sql_unit_run(struct sql_unit *unit, struct db *db, sql_unit_fn call,
                         void *arg, enum apply_verdict *verdict,
                         struct failure *failure, struct diag *diag)
{
    bool savepoint = unit->takes_savepoints;
    int outside = db_savepoints(db);
    enum status status = STATUS_OK;

    if (savepoint) {
        status = handler_sql_send(unit->sql, diag);
        if (status == STATUS_OK)
            status = db_savepoint(db, diag);
        if (status != STATUS_OK)
            return status;
    }
    handler_sql_call_begin(unit->sql);
    status = call(arg, failure, diag);
    if (handler_sql_call_ran(unit->sql))
        unit->takes_savepoints = true;
    if (status != STATUS_OK && status != STATUS_FAILED)
        return status;
    *verdict = APPLY_DONE;
    if (status == STATUS_FAILED)
        *verdict = handler_sql_call_undo(unit->sql) ? APPLY_FAILED
                                                    : APPLY_STUCK;
    if (!savepoint)
        return STATUS_OK;
    if (*verdict == APPLY_DONE)
        return db_release_to_depth(db, outside, diag);
    handler_sql_call_forget(unit->sql);
    status = db_rollback_to_depth(db, outside, diag);
    if (status == STATUS_OK)
        *verdict = APPLY_FAILED;
    if (!applier_is_fault(status))
        return status;
    *verdict = APPLY_STUCK; /* its statement has ended the transaction */
    return STATUS_OK;
}
