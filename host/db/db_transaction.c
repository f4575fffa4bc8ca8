#include "db/db.h"

#include "db/db_core.h"

enum begin { BEGIN_READ, BEGIN_WRITE, BEGIN_SCHEMA };

static enum status driver_begin(struct db *db, enum begin what,
                                struct diag *diag)
{
    if (what == BEGIN_SCHEMA && db->driver->begin_schema != NULL)
        return db->driver->begin_schema(db->session, diag);
    return db->driver->begin(db->session, what != BEGIN_READ, diag);
}

static enum status begin(struct db *db, enum begin what, struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    if (db->in_transaction)
        return db_core_settle(
            db,
            diag_set(diag, STATUS_PERMANENT, "a transaction is open already"),
            diag);
    db->missing[0] = '\0';
    status = db_core_ready(db, diag);
    if (status == STATUS_OK)
        status = driver_begin(db, what, diag);
    if (status == STATUS_OK)
        db->in_transaction = true;
    return db_core_settle(db, status, diag);
}

enum status db_begin(struct db *db, struct diag *diag)
{
    return begin(db, BEGIN_WRITE, diag);
}

enum status db_begin_read(struct db *db, struct diag *diag)
{
    return begin(db, BEGIN_READ, diag);
}

enum status db_begin_schema(struct db *db, struct diag *diag)
{
    return begin(db, BEGIN_SCHEMA, diag);
}

void db_rollback(struct db *db)
{
    if (!db->in_transaction)
        return;
    if (!db->lost && !db->driver->rollback(db->session))
        db_core_lost(db, db->doomed ? &db->failure : NULL);
    db_core_ended(db);
}

bool db_in_transaction(const struct db *db)
{
    return db->in_transaction;
}

/* --- savepoints ---------------------------------------------------------- */

/* A deadline is for what a script runs; ending a savepoint must not meet it. */
typedef enum status (*savepoint_fn)(struct db_session *session, int depth,
                                    struct diag *diag);

static enum status run_savepoint(struct db *db, savepoint_fn fn, int depth,
                                 struct diag *diag)
{
    enum status status;

    if (db->deadline != 0)
        db->driver->deadline(db->session, 0);
    status = fn(db->session, depth, diag);
    if (db->deadline != 0)
        db->driver->deadline(db->session, db->deadline);
    return status;
}

enum status db_savepoint(struct db *db, struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    if (!db->in_transaction && !db->lost)
        return db_core_outside("savepoint", diag);
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    status = run_savepoint(db, db->driver->savepoint, db->depth + 1, diag);
    if (status == STATUS_OK)
        db->depth++;
    return db_core_settle(db, status, diag);
}

enum status db_rollback_to(struct db *db, struct diag *diag)
{
    bool was_doomed = db->doomed;
    enum status status;

    diag = db_core_diag(db, diag);
    if (db->lost)
        return db_core_ready(db, diag);
    if (db->depth == 0)
        return db_core_outside("rollback to a savepoint", diag);
    if (db->broken)
        return db_core_ready(db, diag);
    queue_clear(&db->queue);
    status = run_savepoint(db, db->driver->rollback_to, db->depth, diag);
    if (status != STATUS_OK) {
        /* which savepoints are left is not known any more */
        db->broken = true;
        /* the first failure tells more than "no such savepoint" */
        (void)db_core_settle(db, status, diag);
        return was_doomed ? db_core_ready(db, diag) : status;
    }
    /* while the transaction is doomed no savepoint can be set, so the failure
     * always came after the innermost one */
    db->doomed = false;
    db->failed_tag = -1;
    db->depth--;
    return STATUS_OK;
}

int db_savepoints(const struct db *db)
{
    return db->depth;
}

enum status db_rollback_to_depth(struct db *db, int savepoints,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;

    while (status == STATUS_OK && db->depth > savepoints)
        status = db_rollback_to(db, diag);
    return status;
}

enum status db_release(struct db *db, struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    if (db->depth == 0)
        return db_core_outside("release of a savepoint", diag);
    status = run_savepoint(db, db->driver->release, db->depth, diag);
    if (status == STATUS_OK)
        db->depth--;
    else
        db->broken = true;
    return db_core_settle(db, status, diag);
}

enum status db_release_to_depth(struct db *db, int savepoints,
                                struct diag *diag)
{
    enum status status = STATUS_OK;

    while (status == STATUS_OK && db->depth > savepoints)
        status = db_release(db, diag);
    return status;
}
