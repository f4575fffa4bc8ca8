#include "cli/append_batch.h"

#include "base/memory.h"
#include "run/tries.h"

#define HELD_MAX ((size_t)16 * 1024 * 1024) /* bytes of a batch, roughly */

void append_batch_init(struct append_batch *batch, enum ndjson_kind kind,
                       size_t capacity)
{
    *batch = (struct append_batch){
        .kind = kind,
        .events = mem_alloc(capacity * sizeof(*batch->events)),
        .results = mem_alloc(capacity * sizeof(*batch->results)),
        .lines = mem_alloc(capacity * sizeof(*batch->lines)),
        .capacity = capacity,
    };
}

void append_batch_free(struct append_batch *batch)
{
    mem_free(batch->events);
    mem_free(batch->results);
    mem_free(batch->lines);
    *batch = (struct append_batch){.count = 0};
}

enum status append_batch_read(struct append_batch *batch, struct ndjson *reader,
                              const volatile sig_atomic_t *stop, bool *ended,
                              struct diag *diag)
{
    ndjson_release(reader);
    batch->count = 0;
    *ended = false;
    while (batch->count < batch->capacity && ndjson_held(reader) < HELD_MAX) {
        struct append_event *event = &batch->events[batch->count];
        bool more = false;
        enum status status = ndjson_next(reader, event, &more, diag);

        if (status == STATUS_STOPPED && !*stop)
            continue; /* another signal than the one to stop */
        if (status != STATUS_OK)
            return status;
        if (!more) {
            *ended = true;
            return STATUS_OK;
        }
        batch->lines[batch->count++] = ndjson_line(reader);
    }
    return STATUS_OK;
}

/* A commit whose answer was lost may have been done: from now on the events
 * bring the ids that they were given, and are found if they are there. */
static void keep_ids(struct append_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->events[i].id = batch->results[i].id;
        batch->events[i].has_id = true;
    }
}

/* One batch, until it is written. */
struct writing {
    struct append_batch *batch;
    struct application *app;
    struct append_options options;
    size_t *bad;
};

static enum status write_events(const struct writing *w, struct diag *diag)
{
    struct append_batch *batch = w->batch;
    struct application *app = w->app;

    if (batch->kind == NDJSON_EMIT)
        return capture_append(app->capture, app->db, &w->options, batch->events,
                              batch->count, batch->results, w->bad, diag);
    return append_events(app->store, app->db, &w->options, batch->events,
                         batch->count, batch->results, w->bad, diag);
}

static enum status write_once(void *arg, struct diag *diag)
{
    const struct writing *w = arg;
    struct db *db = w->app->db;
    enum status status;

    *w->bad = w->batch->count;
    status = db_begin(db, diag);
    if (status != STATUS_OK)
        return status;
    status = write_events(w, diag);
    if (status != STATUS_OK) {
        db_rollback(db);
        return status;
    }
    status = db_commit(db, NULL, diag);
    if (status == STATUS_LOST) {
        w->batch->unknown = true;
        keep_ids(w->batch);
    } else if (status == STATUS_OK) {
        w->batch->unknown = false;
    }
    return status;
}

enum status append_batch_write(struct append_batch *batch,
                               struct application *app, size_t *bad,
                               struct diag *diag)
{
    struct writing writing = {
        .batch = batch,
        .app = app,
        .options = {.ids = &app->ids,
                    .now_us = clock_now(&app->clock),
                    .payload_limit = app->settings->limit_payload,
                    .notify = app->settings->notify},
        .bad = bad,
    };

    batch->unknown = false;
    *bad = batch->count;
    if (app->script != NULL) {
        enum status status = script_check_events(app->script, batch->events,
                                                 batch->count, bad, diag);

        if (status != STATUS_OK)
            return status;
    }
    return tries_run(app->db, write_once, &writing, diag);
}
