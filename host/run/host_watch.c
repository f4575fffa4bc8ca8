#include "base/arena.h"
#include "run/host_parts.h"

/* How old the mark may be while there is enough to apply below it: for some
 * consumer, and for each. Others wait for it, and it waits for what is in
 * flight. */
#define MARK_PAUSE_US      (CLOCK_SECOND / 50)
#define MARK_PAUSE_LONG_US (CLOCK_SECOND / 2)

/* Whether somebody paused, resumed or rebuilt a consumer is looked at so
 * often. */
#define REFRESH_US (CLOCK_SECOND / 2)

/* While somebody still has a page below the known mark, a newer one is worth a
 * round trip only now and then. */
static bool mark_can_wait(const struct host *host)
{
    int64_t age = clock_monotonic() - host->marked_at;
    bool some = false, each = true;

    if (clock_monotonic() < host->look_at)
        return true;
    for (size_t i = 0; host->worked && i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;
        bool behind = consumer_is_behind(c, host->mark.mark);

        some |= behind;
        each &= behind || c->row.state != CONSUMER_RUNNING;
    }
    return some && age < (each ? MARK_PAUSE_LONG_US : MARK_PAUSE_US);
}

enum status host_advance_mark(struct host *host, struct diag *diag)
{
    struct application *app = host->app;
    bool undone;
    enum status status;

    if (mark_can_wait(host))
        return STATUS_OK;
    status = flight_settle(&host->flight, &undone, diag);
    if (status != STATUS_OK)
        return status;
    status = high_water_mark_detect(app->db, app->catalog, TOPIC_EVENT_STORE,
                                    &host->watch.detector, &host->mark, diag);
    host->marked_at = clock_monotonic();
    if (status == STATUS_OK)
        mark_watch_tell(&host->watch, &app->log);
    return status;
}

/* A retry that is due but was not made waits for something else. */
static int64_t retry_due(const struct host *host, const struct consumer *c)
{
    int64_t left = c->retries.next_at - clock_now(&host->app->clock);

    return left > 0 ? left : REFRESH_US;
}

int64_t host_next_due(const struct host *host, int64_t us)
{
    if (us > REFRESH_US)
        us = REFRESH_US;
    for (size_t i = 0; i < host->nworkers; i++) {
        const struct worker *worker = &host->workers[i];
        const struct consumer *c = &worker->declared.consumer;

        if (consumer_awaits_retry(c) && retry_due(host, c) < us)
            us = retry_due(host, c);
    }
    return us;
}

bool host_refresh_is_due(struct host *host)
{
    int64_t now = clock_monotonic();

    if (now - host->refreshed_at < REFRESH_US)
        return false;
    host->refreshed_at = now;
    return true;
}

struct states_seen {
    struct host *host;
    bool *changed; /* by worker */
    bool *found;
};

/* What one worker knows of its consumer's row, against the row. */
static void state_seen(void *arg, const struct consumer_row *row)
{
    struct states_seen *seen = arg;

    for (size_t i = 0; i < seen->host->nworkers; i++) {
        const struct consumer_row *known = &seen->host->workers[i]
                                                .declared.consumer.row;

        if (strcmp(known->id, row->id) != 0)
            continue;
        seen->found[i] = true;
        seen->changed[i] = known->state != row->state ||
                           known->halt_reason != row->halt_reason ||
                           known->epoch != row->epoch;
    }
}

/* One statement for all consumers; only those that somebody changed, or that
 * stand still, are read. */
enum status host_refresh_states(struct host *host, struct diag *diag)
{
    struct application *app = host->app;
    struct arena arena = ARENA_EMPTY;
    struct states_seen seen = {
        .host = host,
        .changed = arena_alloc_zero(&arena, host->nworkers + 1),
        .found = arena_alloc_zero(&arena, host->nworkers + 1),
    };
    bool undone;
    enum status status = flight_settle(&host->flight, &undone, diag);

    if (status == STATUS_OK)
        status = db_begin(app->db, diag);
    if (status == STATUS_OK) {
        status = registry_states(app->db, app->catalog, state_seen, &seen,
                                 diag);
        db_rollback(app->db);
    }
    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++) {
        struct worker *worker = &host->workers[i];

        if (!worker->started || (!seen.changed[i] && seen.found[i]))
            continue;
        worker->reload = true;
    }
    arena_free(&arena);
    return status;
}
