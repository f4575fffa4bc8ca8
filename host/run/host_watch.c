#include "base/arena.h"
#include "consumer/deadline.h"
#include "consumer/fire.h"
#include "consumer/retry_turn.h"
#include "run/host_parts.h"

/* Whether somebody paused, resumed or rebuilt a consumer is looked at so
 * often. */
#define REFRESH_US (CLOCK_SECOND / 2)

/* A retry that is due but was not made waits for something else. */
static int64_t retry_due(const struct consumer *c)
{
    int64_t left = c->retries.next_at - consumer_clock(c->env);

    return left > 0 ? left : REFRESH_US;
}

static int64_t compaction_left(struct host *host)
{
    int64_t now = consumer_time(&host->env);
    int64_t due = compactor_due(&host->compactor, host->app, now);

    return due > now ? due - now : 0;
}

int64_t host_next_due(struct host *host, int64_t us)
{
    if (us > REFRESH_US)
        us = REFRESH_US;
    if (!host->options.supervised && compaction_left(host) < us)
        us = compaction_left(host);
    for (size_t i = 0; i < host->nworkers; i++) {
        const struct worker *worker = &host->workers[i];
        const struct consumer *c = &worker->declared.consumer;

        if (retry_turn_is_awaited(c) && retry_due(c) < us)
            us = retry_due(c);
        if (fire_left(c) < us)
            us = fire_left(c) > 0 ? fire_left(c) : 0;
    }
    return us < host_lease_left(host) ? us : host_lease_left(host);
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

struct firsts_seen {
    struct host *host;
    struct text *types;
    size_t *workers; /* by place in `types` */
    size_t count;
};

static void first_seen(void *arg, size_t type, int64_t due_at)
{
    const struct firsts_seen *seen = arg;

    fire_told(&seen->host->workers[seen->workers[type]].declared.consumer,
              due_at);
}

/* What this host has set it knows; operators fire and retry, too. */
static enum status see_deadlines(struct host *host, struct arena *arena,
                                 struct diag *diag)
{
    struct application *app = host->app;
    struct firsts_seen seen = {
        .host = host,
        .types = arena_alloc(arena, host->nworkers * sizeof(*seen.types) + 1),
        .workers = arena_alloc(arena,
                               host->nworkers * sizeof(*seen.workers) + 1),
    };

    for (size_t i = 0; i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;

        if (!host->workers[i].started || !fire_can(c) || c->leases.count == 0)
            continue;
        seen.types[seen.count] = text_of(c->name.name);
        seen.workers[seen.count++] = i;
    }
    if (seen.count == 0)
        return STATUS_OK;
    return deadline_firsts(app->db, app->catalog, seen.types, seen.count,
                           first_seen, &seen, diag);
}

/* One statement for all consumers; only those that somebody changed, or that
 * stand still, are read. With this the database's clock stays known, however
 * it or this machine's steps. */
enum status host_refresh_states(struct host *host, struct diag *diag)
{
    struct application *app = host->app;
    struct arena arena = ARENA_EMPTY;
    struct states_seen seen = {
        .host = host,
        .changed = arena_alloc_zero(&arena, host->nworkers + 1),
        .found = arena_alloc_zero(&arena, host->nworkers + 1),
    };
    int64_t now;
    bool undone;
    enum status status = flight_settle(&host->flight, &undone, diag);

    if (status == STATUS_OK)
        status = db_begin(app->db, diag);
    if (status == STATUS_OK)
        status = application_clock(app, &now, diag);
    if (status == STATUS_OK) {
        status = registry_states(app->db, app->catalog, state_seen, &seen,
                                 diag);
        if (status == STATUS_OK)
            status = see_deadlines(host, &arena, diag);
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

enum status host_retain(struct host *host, bool busy, struct diag *diag)
{
    int64_t now = consumer_time(&host->env);
    bool events, sagas, undone;
    enum status status;

    if (host->options.supervised)
        return STATUS_OK;
    events = retainer_is_due(&host->retainer, host->app, now, busy);
    sagas = saga_retainer_is_due(&host->saga_retainer, now);
    if (!events && !sagas)
        return STATUS_OK;
    status = flight_settle(&host->flight, &undone, diag);
    if (status == STATUS_OK && events)
        status = retainer_step(&host->retainer, host->app, now, diag);
    if (status == STATUS_OK && sagas)
        status = saga_retainer_step(&host->saga_retainer, host->app, now, diag);
    return status;
}

bool host_retains_more(const struct host *host)
{
    return host->retainer.more || host->saga_retainer.more;
}

enum status host_compact(struct host *host, struct diag *diag)
{
    int64_t now = consumer_time(&host->env);
    bool undone;
    enum status status;

    if (host->options.supervised ||
        now < compactor_due(&host->compactor, host->app, now))
        return STATUS_OK;
    status = flight_settle(&host->flight, &undone, diag);
    if (status != STATUS_OK)
        return status;
    return compactor_step(&host->compactor, host->app, now, diag);
}

enum status host_compact_all(struct host *host,
                             const volatile sig_atomic_t *stop,
                             struct diag *diag)
{
    enum status status = STATUS_OK;

    if (host->options.supervised)
        return STATUS_OK;
    compactor_finish(&host->compactor, host->app);
    while (status == STATUS_OK && !*stop &&
           host->compactor.phase != COMPACTOR_RESTS)
        status = compactor_step(&host->compactor, host->app,
                                consumer_time(&host->env), diag);
    return status;
}
