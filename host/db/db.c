#include "db/db.h"

#include "base/hash.h"
#include "base/memory.h"
#include "db/db_core.h"
#include "db/url.h"

#include <assert.h>

struct db_sql db_sql_make(struct text text, enum db_origin origin)
{
    return (struct db_sql){
        .text = text, .hash = hash_fnv1a64(text), .origin = origin};
}

/* --- connection ---------------------------------------------------------- */

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

void db_burden(struct db *db, struct buffer *out)
{
    if (db->session != NULL && db->driver->burden != NULL)
        db->driver->burden(db->session, out);
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

const char *db_missing_table(const struct db *db)
{
    return db->missing;
}

int64_t db_failed_tag(const struct db *db)
{
    return db->failed_tag;
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
        db_core_failed(db, &items[failed], status, diag);
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
