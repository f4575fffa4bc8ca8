#include "model/effects_unit.h"

#include "consumer/applier.h"

enum status effects_unit_check(struct effects *effects,
                               const struct handler *handler,
                               struct failure *failure)
{
    struct append_event *events;
    size_t count;

    events = effects_call_events(effects, &count);
    if (count == 0)
        return STATUS_OK;
    return handler->ops->check_events(handler->code, events, count, failure);
}

static enum status flush(struct db *db, int64_t time_limit,
                         effects_where_fn where_fn, void *arg,
                         struct failure *failure, struct diag *diag)
{
    int64_t tag = -1;
    const char *where;
    enum status status;

    db_deadline(db, clock_monotonic() + time_limit);
    status = db_flush(db, &tag, diag);
    db_deadline(db, 0);
    if (!applier_is_fault(status))
        return status;
    where = where_fn(arg, tag);
    failure_set(failure, false, status == STATUS_UNIQUE ? "unique" : "sql",
                "%s%s%s", where, *where != '\0' ? ": " : "", diag->message);
    return STATUS_FAILED;
}

enum status effects_unit_send(struct effects *effects, struct db *db,
                              int64_t time_limit, effects_where_fn where,
                              void *arg, struct failure *failure,
                              struct diag *diag)
{
    enum status status;

    if (!effects_any(effects))
        return STATUS_OK;
    status = flush(db, time_limit, where, arg, failure, diag);
    return status == STATUS_OK ? effects_send(effects, db, failure, diag)
                               : status;
}
