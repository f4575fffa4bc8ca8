#include "base/clock.h"
#include "base/memory.h"
#include "db/db_core.h"

enum status db_commit(struct db *db, int64_t *failed_tag, struct diag *diag)
{
    enum status status = db_core_clear(db, db_core_diag(db, diag));

    diag = db_core_diag(db, diag);
    if (status == STATUS_OK && !db->in_transaction)
        status = db_core_outside("commit", diag);
    if (status == STATUS_OK)
        status = db_core_send(db, DB_END_COMMIT, diag);
    if (failed_tag != NULL)
        *failed_tag = db->failed_tag;
    if (status == STATUS_OK)
        db_core_ended(db);
    else
        db_rollback(db);
    return status;
}

/* --- without waiting ----------------------------------------------------- */

/* The queue is empty once it was sent. */
static void keep_tags(struct db *db)
{
    struct db_flight *flight = &db->flight;

    if (db->queue.count > flight->capacity) {
        flight->capacity = 2 * db->queue.count;
        flight->tags = mem_grow(flight->tags, flight->capacity,
                                sizeof(*flight->tags));
    }
    flight->ntags = db->queue.count;
    for (size_t i = 0; i < flight->ntags; i++)
        flight->tags[i] = db->queue.items[i].tag;
}

static void set_out(struct db *db, bool answered)
{
    int64_t left = db->deadline - clock_monotonic();

    db->flight.active = true;
    db->flight.answered = answered;
    db->flight.status = STATUS_OK;
    db->flight.failed_tag = -1;
    db->flight.time = db->deadline == 0 ? 0 : left > 0 ? left : 1;
}

enum status db_commit_begin(struct db *db, struct diag *diag)
{
    bool leave = db->driver->leaves != NULL && db->driver->leaves(db->session);
    enum status status;

    diag = db_core_diag(db, diag);
    if (db->flight.active)
        return diag_set(diag, STATUS_PERMANENT,
                        "a transaction was committed whose end nobody asked "
                        "for");
    if (!leave || !db->in_transaction) {
        status = db_commit(db, NULL, diag);
        if (status == STATUS_OK)
            set_out(db, true);
        return status;
    }
    status = db_core_ready(db, diag);
    if (status == STATUS_OK) {
        keep_tags(db);
        status = db_core_send(db, DB_END_LEAVE, diag);
    }
    if (status != STATUS_OK) {
        db_rollback(db);
        return status;
    }
    set_out(db, false);
    db_core_ended(db);
    return STATUS_OK;
}

/* The answer is a failure: what began since has nothing to stand on. */
static void doom_follower(struct db *db)
{
    if (!db->in_transaction || db->doomed)
        return;
    db->doomed = true;
    (void)diag_set(&db->failure, STATUS_CONFLICT,
                   "the transaction before this one was not committed");
}

static void wait_for_answer(struct db *db)
{
    struct db_flight *flight = &db->flight;
    size_t failed = flight->ntags;

    /* not the time limit of a script that has begun to run meanwhile */
    db->driver->deadline(
        db->session, flight->time == 0 ? 0 : clock_monotonic() + flight->time);
    flight->status = db->driver->answer(db->session, &failed, &flight->diag);
    db->driver->deadline(db->session, db->deadline);
    flight->answered = true;
    if (flight->status == STATUS_OK)
        return;
    if (failed < flight->ntags)
        flight->failed_tag = flight->tags[failed];
    if (flight->status == STATUS_LOST || !db->driver->rollback(db->session))
        db_core_lost(db, &flight->diag);
    doom_follower(db);
}

enum status db_core_clear(struct db *db, struct diag *diag)
{
    if (db->flight.active && !db->flight.answered && !db->lost)
        wait_for_answer(db);
    return db_core_ready(db, diag);
}

void db_core_lose(struct db *db)
{
    struct db_flight *flight = &db->flight;

    if (!flight->active || flight->answered)
        return;
    flight->answered = true;
    flight->status = diag_set(&flight->diag, STATUS_LOST,
                              "the connection to the database is lost");
}

enum status db_commit_end(struct db *db, int64_t *failed_tag, struct diag *diag)
{
    struct db_flight *flight = &db->flight;

    diag = db_core_diag(db, diag);
    if (!flight->active)
        return db_core_outside("the end of a commit", diag);
    if (!flight->answered && db->lost)
        db_core_lose(db);
    if (!flight->answered)
        wait_for_answer(db);
    flight->active = false;
    if (failed_tag != NULL)
        *failed_tag = flight->failed_tag;
    if (flight->status != STATUS_OK)
        *diag = flight->diag;
    return flight->status;
}
