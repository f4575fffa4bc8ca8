#include "run/tries.h"

#include "base/clock.h"
#include "db/db.h"
#include "run/backoff.h"

#include <time.h>

#define TRY_FOR     (10 * CLOCK_SECOND)
#define FIRST_PAUSE (CLOCK_SECOND / 200)
#define PAUSE_CAP   (CLOCK_SECOND / 4)

static void pause_for(int64_t us)
{
    struct timespec time = {
        .tv_sec = us / CLOCK_SECOND,
        .tv_nsec = us % CLOCK_SECOND * 1000,
    };

    nanosleep(&time, NULL);
}

enum status tries_run(struct db *db, tries_fn *once, void *arg,
                      struct diag *diag)
{
    struct backoff backoff = backoff_make(FIRST_PAUSE, PAUSE_CAP);
    int64_t started = clock_monotonic();
    bool lost = false;

    for (;;) {
        enum status status = lost ? db_reopen(db, diag) : STATUS_OK;

        if (status == STATUS_OK) {
            status = once(arg, diag);
            lost = status == STATUS_LOST;
        }
        if (!lost && status != STATUS_CONFLICT)
            return status;
        if (clock_monotonic() - started > TRY_FOR)
            return status;
        pause_for(backoff_next(&backoff));
    }
}
