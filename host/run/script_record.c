#include "run/script_record.h"

#include <unistd.h>

#define HOST_NAME_MAX_LEN 255

/* So many rows stay of one machine. */
#define KEPT 50

void script_record_free(struct script_record *record)
{
    buffer_free(&record->declared);
    buffer_free(&record->changes);
    buffer_free(&record->error);
}

static void host_name(char out[HOST_NAME_MAX_LEN + 1])
{
    char name[HOST_NAME_MAX_LEN + 1] = "";

    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0')
        memcpy(name, "unknown", sizeof("unknown"));
    text_clean(text_of(name), out, HOST_NAME_MAX_LEN + 1);
}

static struct db_value cut(const struct buffer *text)
{
    struct text all = buffer_text(text);

    all.len = text_utf8_prefix_chars(all, SCRIPT_RECORD_TEXT);
    return db_text_value(all);
}

static enum status take_time(void *arg, struct db_rows *row, struct diag *diag)
{
    int64_t *at = arg;

    (void)diag;
    *at = db_get_timestamp(row, 0);
    return STATUS_OK;
}

/* In the caller's transaction. */
static enum status prune(struct application *app, const char *name,
                         struct diag *diag)
{
    const struct db_value which[] = {db_string(name), db_integer(KEPT)};
    int64_t oldest = 0;
    enum status status = db_rows_each(
        app->db, catalog_sql(app->catalog, SQL_SCRIPT_VERSION_FORMER), which, 2,
        take_time, &oldest, diag);
    const struct db_value params[] = {db_string(name), db_timestamp(oldest)};

    if (status != STATUS_OK || oldest == 0)
        return status;
    return db_queue(app->db,
                    catalog_sql(app->catalog, SQL_SCRIPT_VERSION_PRUNE), params,
                    2, DB_ANY_ROWS, -1, diag);
}

static enum status insert(struct application *app, const struct uuid *host,
                          const char *name, int64_t now,
                          const struct script_record *record, struct diag *diag)
{
    const struct db_value former[] = {db_uuid(*host), db_null()};
    const struct db_value params[] = {
        db_uuid(uuid_v7(&app->ids, clock_now(&app->clock))),
        db_uuid(*host),
        db_string(name),
        db_string(record->version),
        db_string(record->live ? "LIVE" : "REFUSED"),
        db_timestamp(now),
        record->live ? db_timestamp(now) : db_null(),
        cut(&record->changes),
        record->live ? db_null() : cut(&record->error)};
    enum status status = STATUS_OK;

    if (record->live)
        status = db_queue(app->db,
                          catalog_sql(app->catalog, SQL_SCRIPT_VERSION_SEEN),
                          former, 2, DB_ANY_ROWS, -1, diag);
    if (status == STATUS_OK)
        status = db_queue(app->db,
                          catalog_sql(app->catalog, SQL_SCRIPT_VERSION_INSERT),
                          params, 9, 1, -1, diag);
    return status;
}

enum status script_record_write(struct application *app,
                                const struct uuid *host,
                                const struct script_record *record,
                                struct diag *diag)
{
    char name[HOST_NAME_MAX_LEN + 1];
    int64_t now = 0;
    enum status status;

    host_name(name);
    status = db_begin(app->db, diag);
    if (status == STATUS_OK)
        status = db_now(app->db, &now, diag);
    if (status == STATUS_OK)
        status = insert(app, host, name, now, record, diag);
    if (status == STATUS_OK)
        status = prune(app, name, diag);
    if (status == STATUS_OK)
        status = db_commit(app->db, NULL, diag);
    db_rollback(app->db);
    return status;
}

enum status script_record_seen(struct application *app, const struct uuid *host,
                               bool ended, struct diag *diag)
{
    int64_t now = 0;
    enum status status = db_begin(app->db, diag);

    if (status == STATUS_OK)
        status = db_now(app->db, &now, diag);
    if (status == STATUS_OK) {
        const struct db_value params[] = {
            db_uuid(*host), ended ? db_null() : db_timestamp(now)};

        status = db_queue(app->db,
                          catalog_sql(app->catalog, SQL_SCRIPT_VERSION_SEEN),
                          params, 2, DB_ANY_ROWS, -1, diag);
    }
    if (status == STATUS_OK)
        status = db_commit(app->db, NULL, diag);
    db_rollback(app->db);
    return status;
}
