#include "run/saga_retainer.h"

#include "model/saga_retention.h"

#define LOOK_PAUSE_US (60 * CLOCK_SECOND)
#define BATCH         200

bool saga_retainer_is_due(const struct saga_retainer *retainer, int64_t now)
{
    return retainer->more || !retainer->looked ||
           now - retainer->looked_at >= LOOK_PAUSE_US;
}

static enum status delete_batch(struct application *app, size_t *count,
                                struct diag *diag)
{
    int64_t clock;
    enum status status = db_begin(app->db, diag);

    if (status == STATUS_OK)
        status = application_clock(app, &clock, diag);
    if (status == STATUS_OK)
        status = saga_retention_delete(
            app->db, app->catalog, &app->settings->names,
            clock - app->settings->sagas_keep_us, BATCH, count, diag);
    if (status == STATUS_OK)
        status = db_commit(app->db, NULL, diag);
    if (status != STATUS_OK)
        db_rollback(app->db);
    return status;
}

enum status saga_retainer_step(struct saga_retainer *retainer,
                               struct application *app, int64_t now,
                               struct diag *diag)
{
    size_t count = 0;
    enum status status = delete_batch(app, &count, diag);

    if (status != STATUS_OK)
        return status;
    retainer->looked = true;
    retainer->more = count == BATCH;
    if (!retainer->more)
        retainer->looked_at = now;
    if (count > 0)
        log_write(&app->log, LOG_DEBUG, NULL, "%zu completed sagas deleted",
                  count);
    return STATUS_OK;
}
