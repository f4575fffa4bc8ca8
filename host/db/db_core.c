#include "db/db_core.h"

#include "db/url.h"

static const struct db_driver *const drivers[] = {
    &db_sqlite_driver,
    &db_postgres_driver,
    &db_mysql_driver,
};

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

/* --- the end of a call ------------------------------------------------------
 */

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

struct diag *db_core_diag(struct db *db, struct diag *diag)
{
    return diag != NULL ? diag : &db->unseen;
}

void db_core_failed(struct db *db, const struct db_queued *item,
                    enum status status, struct diag *diag)
{
    if (!db->doomed)
        db->failed_tag = item->tag;
    if (item->bulk && status == STATUS_PERMANENT &&
        strstr(diag->message, item->table->name) == NULL)
        (void)diag_append(diag, "; table %s", item->table->name);
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
    if (status != STATUS_OK && failed < count)
        db_core_failed(db, &items[failed], status, diag);
    queue_sent(&db->queue);
    return db_core_settle(db, status, diag);
}

enum status db_core_prepare(struct db *db, struct diag *diag)
{
    enum status status = db_core_clear(db, diag);

    return status == STATUS_OK ? db_core_send(db, DB_END_NONE, diag) : status;
}

enum status db_core_outside(const char *what, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT, "%s outside of a transaction",
                    what);
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
