#include "cli/append_batch.h"

#include "base/memory.h"
#include "run/backoff.h"

#include <time.h>

#define HELD_MAX ((size_t)16 * 1024 * 1024) /* bytes of a batch, roughly */

/* Of many writers to one stream one wins each time: how often another one
 * loses says nothing, only how long. */
#define TRY_FOR     (10 * CLOCK_SECOND)
#define FIRST_PAUSE (CLOCK_SECOND / 200)
#define PAUSE_CAP   (CLOCK_SECOND / 4)

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

static enum status write_events(struct append_batch *batch,
                                struct application *app,
                                const struct append_options *options,
                                size_t *bad, struct diag *diag)
{
    if (batch->kind == NDJSON_EMIT)
        return capture_append(app->capture, app->db, options, batch->events,
                              batch->count, batch->results, bad, diag);
    return append_events(app->store, app->db, options, batch->events,
                         batch->count, batch->results, bad, diag);
}

static enum status write_once(struct append_batch *batch,
                              struct application *app,
                              const struct append_options *options, size_t *bad,
                              struct diag *diag)
{
    enum status status;

    *bad = batch->count;
    status = db_begin(app->db, diag);
    if (status != STATUS_OK)
        return status;
    status = write_events(batch, app, options, bad, diag);
    if (status != STATUS_OK) {
        db_rollback(app->db);
        return status;
    }
    status = db_commit(app->db, NULL, diag);
    if (status == STATUS_LOST) {
        batch->unknown = true;
        keep_ids(batch);
    } else if (status == STATUS_OK) {
        batch->unknown = false;
    }
    return status;
}

static void pause_for(int64_t us)
{
    struct timespec time = {
        .tv_sec = us / CLOCK_SECOND,
        .tv_nsec = us % CLOCK_SECOND * 1000,
    };

    nanosleep(&time, NULL);
}

enum status append_batch_write(struct append_batch *batch,
                               struct application *app, size_t *bad,
                               struct diag *diag)
{
    struct append_options options = {
        .ids = &app->ids,
        .now_us = clock_now(&app->clock),
        .payload_limit = app->settings->limit_payload,
        .notify = app->settings->notify,
    };
    int64_t started = clock_monotonic();
    struct backoff backoff = backoff_make(FIRST_PAUSE, PAUSE_CAP);
    bool lost = false;

    batch->unknown = false;
    *bad = batch->count;
    if (app->script != NULL) {
        enum status status = script_check_events(app->script, batch->events,
                                                 batch->count, bad, diag);

        if (status != STATUS_OK)
            return status;
    }
    for (;;) {
        enum status status = lost ? db_reopen(app->db, diag) : STATUS_OK;

        if (status == STATUS_OK) {
            status = write_once(batch, app, &options, bad, diag);
            lost = status == STATUS_LOST;
        }
        if (!lost && status != STATUS_CONFLICT)
            return status;
        if (clock_monotonic() - started > TRY_FOR)
            return status;
        pause_for(backoff_next(&backoff));
    }
}
