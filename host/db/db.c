#include "db/db.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "db/db_core.h"

#include "db/url.h"

#include <assert.h>

static const struct db_driver *const drivers[] = {
    &db_sqlite_driver,
    &db_postgres_driver,
    &db_mysql_driver,
};

struct db_sql db_sql_make(struct text text, enum db_origin origin)
{
    return (struct db_sql){
        .text = text, .hash = hash_fnv1a64(text), .origin = origin};
}

/* --- connection ---------------------------------------------------------- */

static const struct db_driver *driver_of(const char *url)
{
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if (drivers[i]->accepts(url))
            return drivers[i];
    }
    return NULL;
}

static enum status no_driver(const char *url, struct diag *diag)
{
    const char *dialect = db_url_dialect(url);
    int scheme = (int)strcspn(url, ":");

    if (dialect != NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "this build has no driver for %.*s: URLs", scheme, url);
    return diag_set(diag, STATUS_CONFIG,
                    "the database URL has an unknown form; use " DB_URL_FORMS);
}

enum status db_core_driver(const char *url, const struct db_driver **driver,
                           struct diag *diag)
{
    if (url == NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "there is no database URL; use " DB_URL_FORMS);
    *driver = driver_of(url);
    return *driver != NULL ? STATUS_OK : no_driver(url, diag);
}

enum status db_open(const struct db_options *options, struct db **db,
                    struct diag *diag)
{
    const struct db_driver *driver = NULL;
    struct db_session *session;
    enum status status;

    *db = NULL;
    status = db_core_driver(options->url, &driver, diag);
    if (status != STATUS_OK)
        return status;
    assert(driver != NULL);
    status = driver->connect(options, &session, diag);
    if (status != STATUS_OK)
        return status;
    *db = mem_alloc(sizeof(**db));
    (*db)->driver = driver;
    (*db)->session = session;
    (*db)->failed_tag = -1;
    db_url_mask(options->url, &(*db)->url_shown);
    return STATUS_OK;
}

enum status db_scratch(const char *url, struct buffer *scratch,
                       struct diag *diag)
{
    const struct db_driver *driver = NULL;
    enum status status = db_core_driver(url, &driver, diag);

    if (status != STATUS_OK)
        return status;
    assert(driver != NULL);
    if (driver->scratch != NULL)
        return driver->scratch(url, scratch, diag);
    buffer_append_string(scratch, url);
    return STATUS_OK;
}

enum status db_scratch_drop(const char *url, struct diag *diag)
{
    const struct db_driver *driver = NULL;
    enum status status = db_core_driver(url, &driver, diag);

    if (status != STATUS_OK)
        return status;
    assert(driver != NULL);
    return driver->scratch != NULL ? driver->scratch(url, NULL, diag)
                                   : STATUS_OK;
}

void db_close(struct db *db)
{
    if (db == NULL)
        return;
    (void)!db_core_clear(db, NULL);
    db_rollback(db);
    db->driver->disconnect(db->session);
    queue_free(&db->queue);
    mem_free(db->flight.tags);
    buffer_free(&db->url_shown);
    mem_free(db);
}

void db_core_ended(struct db *db)
{
    db->in_transaction = false;
    db->depth = 0;
    db->doomed = false;
    db->broken = false;
    db->failed_tag = -1;
    queue_clear(&db->queue);
}

enum status db_reopen(struct db *db, struct diag *diag)
{
    enum status status;

    db_core_ended(db);
    db_core_lose(db);
    status = db->driver->reconnect(db->session, diag);
    db->lost = false;
    if (status != STATUS_OK)
        db_core_lost(db, diag);
    return status;
}

const char *db_dialect(const struct db *db)
{
    return db->driver->name;
}

unsigned db_abilities(const struct db *db)
{
    return db->driver->can;
}

const char *db_url_shown(const struct db *db)
{
    return db->url_shown.data;
}

int64_t db_round_trips(const struct db *db)
{
    return db->driver->round_trips(db->session);
}

void db_deadline(struct db *db, int64_t at_us)
{
    db->deadline = at_us;
    db->driver->deadline(db->session, at_us);
}

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

/* --- sticky failure ------------------------------------------------------ */

#define LOST "the connection to the database is lost"

static enum status say_lost(const struct db *db, struct diag *diag)
{
    const char *why = db->lost_why.message;

    if (why[0] == '\0')
        return diag_set(diag, STATUS_LOST, LOST);
    if (strncmp(why, LOST, strlen(LOST)) == 0)
        return diag_set(diag, STATUS_LOST, "%s", why);
    return diag_set(diag, STATUS_LOST, LOST ": %s", why);
}

/* Whether a call may go to the database at all. */
enum status db_core_ready(struct db *db, struct diag *diag)
{
    if (db->lost)
        return say_lost(db, diag);
    if (db->doomed) {
        if (diag != NULL)
            *diag = db->failure;
        return db->failure.status;
    }
    return STATUS_OK;
}

void db_core_lost(struct db *db, const struct diag *why)
{
    if (db->lost)
        return;
    db->lost = true;
    db->lost_why = why != NULL ? *why : (struct diag){0};
}

/* The failure of a call becomes the transaction's. */
enum status db_core_settle(struct db *db, enum status status, struct diag *diag)
{
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_LOST)
        db_core_lost(db, diag);
    if (status == STATUS_PERMANENT && diag->constraint[0] != '\0')
        memcpy(db->missing, diag->constraint, sizeof(db->missing));
    if (db->in_transaction && !db->doomed) {
        db->doomed = true;
        db->failure = *diag;
        db->failure.status = status;
    }
    return status;
}

/* A place for the driver's words, so that a failure can be kept. */
struct diag *db_core_diag(struct db *db, struct diag *diag)
{
    return diag != NULL ? diag : &db->unseen;
}

enum status db_core_send(struct db *db, enum db_end end, struct diag *diag)
{
    const struct db_queued *items = db->queue.items;
    size_t count = db->queue.count;
    size_t failed = count;
    enum status status;

    if (count == 0 && end == DB_END_NONE)
        return STATUS_OK;
    status = db->driver->run(db->session, items, count, end, &failed, diag);
    if (status != STATUS_OK && failed < count && !db->doomed)
        db->failed_tag = items[failed].tag;
    queue_sent(&db->queue);
    return db_core_settle(db, status, diag);
}

/* Before a statement that goes out at once. */
enum status db_core_prepare(struct db *db, struct diag *diag)
{
    enum status status = db_core_clear(db, diag);

    return status == STATUS_OK ? db_core_send(db, DB_END_NONE, diag) : status;
}

const char *db_missing_table(const struct db *db)
{
    return db->missing;
}

int64_t db_failed_tag(const struct db *db)
{
    return db->failed_tag;
}

/* --- transactions -------------------------------------------------------- */

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

enum status db_core_outside(const char *what, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT, "%s outside of a transaction",
                    what);
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

/* --- statements ---------------------------------------------------------- */

enum status db_execute(struct db *db, const struct db_sql *sql,
                       const struct db_value *params, size_t nparams,
                       int64_t *affected, struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    queue_skip(&db->queue);
    status = db->driver->execute(db->session, sql, params, nparams, affected,
                                 diag);
    return db_core_settle(db, status, diag);
}

/* --- queue --------------------------------------------------------------- */

static enum status may_queue(struct db *db, struct diag *diag)
{
    enum status status = db_core_ready(db, diag);

    if (status == STATUS_OK && !db->in_transaction)
        return db_core_outside("a statement was queued", diag);
    return status;
}

enum status db_queue(struct db *db, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams,
                     int64_t expect, int64_t tag, struct diag *diag)
{
    enum status status = may_queue(db, diag);

    if (status == STATUS_OK)
        queue_statement(&db->queue, sql, params, nparams, expect, tag);
    return status;
}

enum status db_queue_bulk(struct db *db, enum db_bulk what,
                          const struct db_table *table,
                          const struct db_value *values, size_t nrows,
                          int64_t tag, struct diag *diag)
{
    enum status status = may_queue(db, diag);

    if (status == STATUS_OK && nrows > 0)
        queue_bulk(&db->queue, what, table, values, nrows, tag);
    return status;
}

enum status db_flush(struct db *db, int64_t *failed_tag, struct diag *diag)
{
    enum status status = db_core_prepare(db, db_core_diag(db, diag));

    if (failed_tag != NULL)
        *failed_tag = db->failed_tag;
    return status;
}

size_t db_queue_mark(const struct db *db)
{
    return queue_mark(&db->queue);
}

void db_queue_drop(struct db *db, size_t mark)
{
    queue_drop(&db->queue, mark);
}

bool db_queue_holds(const struct db *db, size_t mark)
{
    return queue_holds(&db->queue, mark);
}

/* --- the rest ------------------------------------------------------------ */

/* Tells the callback's own failure from the database's: only the second dooms
 * the transaction. */
struct lookup_call {
    db_lookup_fn fn;
    void *arg;
    struct db *db;
    bool refused;
};

static enum status lookup_row(void *arg, size_t index, struct db_rows *row,
                              struct diag *diag)
{
    struct lookup_call *call = arg;
    enum status status;

    row->db = call->db;
    status = call->fn(call->arg, index, row, diag);
    call->refused = status != STATUS_OK;
    if (status == STATUS_OK && row->mismatch)
        status = db_rows_mismatch_error(row, diag);
    return status;
}

/* The queue goes out in front of it: what was queued is not waited for. */
static enum status lookup_behind(struct db *db, const struct db_table *table,
                                 const struct text *keys, size_t nkeys,
                                 struct lookup_call *call, struct diag *diag)
{
    const struct db_queued *items = db->queue.items;
    size_t count = db->queue.count;
    size_t failed = count;
    enum status status = db->driver->lookup_behind(db->session, items, count,
                                                   &failed, table, keys, nkeys,
                                                   lookup_row, call, diag);

    if (status != STATUS_OK && failed < count)
        db->failed_tag = items[failed].tag;
    queue_sent(&db->queue);
    return status;
}

enum status db_lookup(struct db *db, const struct db_table *table,
                      const struct text *keys, size_t nkeys, db_lookup_fn fn,
                      void *arg, struct diag *diag)
{
    struct lookup_call call = {.fn = fn, .arg = arg, .db = db};
    bool along = db->driver->lookup_behind != NULL && nkeys > 0 &&
                 db->queue.count > 0;
    enum status status;

    diag = db_core_diag(db, diag);
    status = along ? db_core_clear(db, diag) : db_core_prepare(db, diag);
    if (status != STATUS_OK || nkeys == 0)
        return status;
    if (along)
        status = lookup_behind(db, table, keys, nkeys, &call, diag);
    else
        status = db->driver->lookup(db->session, table, keys, nkeys, lookup_row,
                                    &call, diag);
    return call.refused ? status : db_core_settle(db, status, diag);
}

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

enum status db_script(struct db *db, struct text script, enum db_origin origin,
                      struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    queue_skip(&db->queue);
    status = db->driver->script(db->session, script, origin, diag);
    return db_core_settle(db, status, diag);
}
