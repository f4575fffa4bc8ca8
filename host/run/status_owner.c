#include "run/status_owner.h"

static struct status_consumer *consumer_of(struct status_report *report,
                                           struct text type, struct text name)
{
    for (size_t i = 0; i < report->nconsumers; i++) {
        struct status_consumer *consumer = &report->consumers[i];

        if (text_equal(text_of(consumer->type), type) &&
            text_equal(text_of(consumer->name), name))
            return consumer;
    }
    return NULL;
}

/* Rows of one instance come one after the other. */
static struct status_owner *owner_of(struct arena *arena,
                                     struct status_consumer *consumer,
                                     struct db_rows *row)
{
    struct text instance = db_get_text(row, 3);
    struct status_owner *owner;

    if (consumer->nowners > 0) {
        owner = &consumer->owners[consumer->nowners - 1];
        if (text_equal(text_of(owner->instance), instance))
            return owner;
    }
    consumer->owners = arena_grow(arena, consumer->owners, consumer->nowners,
                                  sizeof(*consumer->owners));
    owner = &consumer->owners[consumer->nowners++];
    owner->instance = arena_string(arena, instance);
    owner->host = db_is_null(row, 4) ? ""
                                     : arena_string(arena, db_get_text(row, 4));
    owner->live = db_get_bool(row, 5);
    return owner;
}

static enum status take(void *arg, struct db_rows *row, struct diag *diag)
{
    struct status_report *report = arg;
    struct status_consumer *consumer = consumer_of(report, db_get_text(row, 0),
                                                   db_get_text(row, 1));
    struct status_owner *owner;

    (void)diag;
    if (consumer == NULL)
        return STATUS_OK;
    owner = owner_of(&report->arena, consumer, row);
    owner->partitions = arena_grow(&report->arena, owner->partitions,
                                   owner->npartitions,
                                   sizeof(*owner->partitions));
    owner->partitions[owner->npartitions++] = db_get_int64(row, 2);
    return STATUS_OK;
}

enum status status_owners_read(struct status_reading *reading,
                               struct diag *diag)
{
    const struct application *app = reading->app;

    return db_rows_each(app->db, catalog_sql(app->catalog, SQL_STATUS_OWNERS),
                        NULL, 0, take, reading->report, diag);
}
