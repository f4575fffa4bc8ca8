#include "outbox/outbox_retry.h"

#include "consumer/deadline.h"
#include "consumer/operation_walk.h"

enum { FILTER_PARAMS = 3 };

enum status outbox_retry(const struct operate_env *env,
                         const struct outbox_filter *filter, int64_t *changed,
                         struct diag *diag)
{
    int64_t now = 0;
    enum status status = deadline_clock(env->db, env->clock, &now, diag);
    const struct db_value values[FILTER_PARAMS + 1] = {
        db_string(filter->route),
        db_string(filter->type),
        db_string(filter->id),
        db_timestamp(now),
    };
    const struct operation_walk walk = {
        .last = SQL_OUTBOX_LAST,
        .page_end = SQL_OUTBOX_PAGE_END,
        .find = values,
        .nfind = FILTER_PARAMS,
        .change = SQL_OUTBOX_RETRY,
        .values = values,
        .nvalues = FILTER_PARAMS + 1,
        .done = "messages were made pending",
    };

    *changed = 0;
    return status == STATUS_OK ? operation_walk_run(env, &walk, changed, diag)
                               : status;
}
