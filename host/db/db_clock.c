#include "db/db.h"

#include "base/clock.h"
#include "db/db_core.h"

enum status db_now(struct db *db, int64_t *now_us, struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    status = db_core_clear(db, diag);
    if (status != STATUS_OK)
        return status;
    return db_core_settle(db, db->driver->now(db->session, now_us, diag), diag);
}

/* A clock that is wrong by more than this, and was put right, may be followed
 * so much later. */
#define CLOCK_ASKED_US (2 * CLOCK_SECOND)

enum status db_clock(struct db *db, int64_t *now_us, struct diag *diag)
{
    int64_t at = clock_monotonic();
    enum status status = STATUS_OK;

    /* who shares the machine's clock with its database asks for nothing */
    if (db->asked_at == 0 || at - db->asked_at >= CLOCK_ASKED_US ||
        (db->driver->can & DB_CAN_MANY_HOSTS) == 0) {
        status = db_now(db, now_us, diag);
        if (status != STATUS_OK)
            return status;
        at = clock_monotonic();
        db->asked_at = at;
        db->ahead_us = *now_us - at;
    }
    *now_us = at + db->ahead_us;
    return status;
}

bool db_clock_known(const struct db *db, int64_t *now_us)
{
    *now_us = clock_monotonic() + db->ahead_us;
    return db->asked_at != 0;
}
