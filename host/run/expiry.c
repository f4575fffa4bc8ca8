#include "run/expiry.h"

#include "model/command_results.h"

#include <stddef.h>

#define LOOK_PAUSE_US (60 * CLOCK_SECOND)
#define BUSY_PATIENCE 2
#define BATCH         1000

/* Deletes up to `limit` rows that are older than `before_us`; how many. */
typedef enum status (*expire_fn)(struct db *db, const struct catalog *catalog,
                                 int64_t before_us, int64_t limit,
                                 int64_t *deleted, struct diag *diag);

struct expiry_kind {
    const char *what; /* for the log */
    size_t keep;      /* place of the age in struct settings */
    expire_fn expire;
};

static const struct expiry_kind KINDS[] = {
    {"results of commands", offsetof(struct settings, commands_keep_us),
     command_results_expire},
};

static int64_t keep_of(const struct settings *settings,
                       const struct expiry_kind *kind)
{
    return *(const int64_t *)((const char *)settings + kind->keep);
}

bool expiry_is_due(const struct expiry *expiry, int64_t now, bool busy)
{
    int64_t age = now - expiry->looked_at;

    if (busy)
        return age >= BUSY_PATIENCE * LOOK_PAUSE_US;
    return expiry->more || !expiry->looked || age >= LOOK_PAUSE_US;
}

enum status expiry_step(struct expiry *expiry, struct application *app,
                        int64_t now, struct diag *diag)
{
    bool more = false;
    int64_t clock;
    enum status status = application_clock(app, &clock, diag);

    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        const struct expiry_kind *kind = &KINDS[i];
        int64_t before = clock - keep_of(app->settings, kind);
        int64_t deleted = 0;

        status = kind->expire(app->db, app->catalog, before, BATCH, &deleted,
                              diag);
        if (status != STATUS_OK)
            return status;
        more |= deleted >= BATCH;
        if (deleted > 0)
            log_write(&app->log, LOG_DEBUG, NULL, "%lld %s deleted",
                      (long long)deleted, kind->what);
    }
    expiry->looked = true;
    expiry->more = more;
    if (!more)
        expiry->looked_at = now;
    return STATUS_OK;
}
