/*
 * Core -- what the files of db.h and shape.c share: the connection's state and
 * the way every call begins and ends. Nobody else sees inside of struct db.
 */
#ifndef HOST_DB_DB_CORE_H
#define HOST_DB_DB_CORE_H

#include "base/buffer.h"
#include "db/driver.h"
#include "db/queue.h"

/* A transaction whose COMMIT was sent, until its owner knows what became of
 * it. */
struct db_flight {
    bool active;
    bool answered; /* what follows is the answer */
    enum status status;
    struct diag diag;
    int64_t failed_tag;
    int64_t time;  /* it may take after the waiting began; 0: any */
    int64_t *tags; /* of the statements that were sent */
    size_t ntags, capacity;
};

struct db {
    const struct db_driver *driver;
    struct db_session *session;
    struct buffer url_shown;

    bool in_transaction;
    int depth; /* open savepoints */
    bool lost;
    struct diag lost_why; /* of `lost`; no message: nobody said */
    bool doomed;          /* `failure` is the answer to every call */
    bool broken; /* a savepoint could not be ended: only db_rollback helps */
    int64_t deadline; /* of statements; 0: none */
    int64_t asked_at; /* db_clock: monotonic, 0: never */
    int64_t ahead_us; /* ... of the monotonic clock */
    struct diag failure;
    char missing[DIAG_NAME_SIZE]; /* db_missing_table */
    int64_t failed_tag;

    struct queue queue;
    struct db_flight flight;
    struct diag unseen; /* when the caller gave no diag */
};

/** The driver that takes the URL. CONFIG when there is none. */
enum status db_core_driver(const char *url, const struct db_driver **driver,
                           struct diag *diag) MUST_CHECK;
/** A place for the driver's words, so that a failure can be kept. */
struct diag *db_core_diag(struct db *db, struct diag *diag);
/** Whether a call may go to the database at all: LOST, the transaction's
 * failure, or OK. */
enum status db_core_ready(struct db *db, struct diag *diag) MUST_CHECK;
/** The same, after the answer to a COMMIT that is still to come. */
enum status db_core_clear(struct db *db, struct diag *diag) MUST_CHECK;
/** The same, and sends the queue: before a statement that goes out at once. */
enum status db_core_prepare(struct db *db, struct diag *diag) MUST_CHECK;
/** Sends the queue and does not look at anything before. */
enum status db_core_send(struct db *db, enum db_end end,
                         struct diag *diag) MUST_CHECK;
/** Notes which item of the queue failed; of a bulk statement the message names
 * the table, which a server does not always do. */
void db_core_failed(struct db *db, const struct db_queued *item,
                    enum status status, struct diag *diag);
/** What was not answered will not be any more. */
void db_core_lose(struct db *db);
/** PERMANENT: `what` was tried outside of a transaction. */
enum status db_core_outside(const char *what, struct diag *diag);
/** The transaction is over, however it ended. */
void db_core_ended(struct db *db);
/** From here on every call is LOST, for this reason; NULL: nobody said. */
void db_core_lost(struct db *db, const struct diag *why);
/** The failure of a call becomes the transaction's; `diag` holds it. */
enum status db_core_settle(struct db *db, enum status status,
                           struct diag *diag);

#endif
