#include "run/host.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "consumer/flight.h"
#include "consumer/rebuild.h"
#include "run/backoff.h"
#include "run/declared_consumer.h"
#include "run/declared_table.h"
#include "run/rebuild_run.h"
#include "topic/high_water_mark.h"

#include <time.h>

/* How often in a row a run to idle meets a lost connection or a conflict
 * before it gives up. */
#define RUN_TRIES 20

/* How old the mark may be while there is enough to apply below it: for some
 * consumer, and for each. Others wait for it, and it waits for what is in
 * flight. */
#define MARK_PAUSE_US      (CLOCK_SECOND / 50)
#define MARK_PAUSE_LONG_US (CLOCK_SECOND / 2)

/* The log names who keeps the mark back after a while, and then this often. */
#define BLOCKED_PATIENCE_US CLOCK_SECOND
#define BLOCKED_AGAIN_US    (30 * CLOCK_SECOND)

/* Whether somebody paused, resumed or rebuilt a consumer is looked at so
 * often. */
#define REFRESH_US (CLOCK_SECOND / 2)

/* Two hosts on one database fence each other all the time; it is told at most
 * this often. */
#define FENCED_TOLD_US (10 * CLOCK_SECOND)

/* One declared consumer and the model that applies for it. */
struct worker {
    struct declared_consumer declared;
    struct diag trouble; /* of its last step */
    bool stuck;          /* and that does not pass by itself */
    bool stuck_told;
    bool reload;            /* its row was changed by somebody */
    int64_t fenced;         /* times, since it was told */
    int64_t fenced_told_at; /* monotonic; 0: never */
};

struct host {
    struct application *app;
    struct consumer_env env;
    struct flight flight;
    struct worker *workers;
    size_t nworkers;
    struct high_water_mark mark;
    struct mark_detector detector;
    int64_t marked_at;      /* monotonic: when the mark was looked at last */
    bool worked;            /* the newest round applied something */
    int64_t blocked_since;  /* monotonic: since when the mark is held back */
    int64_t blocked_told;   /* ... and when the log named who holds it */
    struct backoff backoff; /* after conflicts and lost connections */
    int64_t refreshed_at;   /* monotonic */
    bool lose_answer;
    bool trouble_told;
    int conflicts; /* in a row */
};

/* --- open and close
 * ------------------------------------------------------------ */

static void host_free(struct host *host)
{
    for (size_t i = 0; i < host->nworkers; i++)
        declared_consumer_free(&host->workers[i].declared);
    mem_free(host->workers);
    mem_free(host);
}

/* A checkpoint behind the topic's end would pass over what comes there: the
 * topic was restored from an older copy, or the row was changed by hand. */
static enum status check_checkpoints(struct host *host, struct diag *diag)
{
    enum status status = high_water_mark_read(host->app->db, host->app->catalog,
                                              TOPIC_EVENT_STORE, &host->mark,
                                              diag);

    /* a mark above the end is told by whoever moves the mark */
    if (status == STATUS_OK && host->mark.mark > host->mark.end)
        return STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;

        for (int p = 0; p < c->stored.partitions; p++)
            if (c->stored.position[p] > host->mark.end)
                return diag_set(
                    diag, STATUS_REFUSED,
                    "the checkpoint of %s '%s' in partition %d stands at %lld "
                    "(table %s), and the topic '%s' ends at position %lld: the "
                    "events "
                    "were restored from an older copy; restore both from one "
                    "copy, or start the consumer anew",
                    c->name.type, c->name.name, p,
                    (long long)c->stored.position[p],
                    host->env.names->table[TABLE_CHECKPOINTS], c->source,
                    (long long)host->mark.end);
    }
    return status;
}

/* A table that on_change lets be made anew comes first: nothing else can. */
static enum status start_worker(struct host *host, struct worker *worker,
                                struct diag *diag)
{
    struct declared_consumer *declared = &worker->declared;
    struct rebuild_report report;
    bool anew;
    enum status status = declared_table_on_change(
        host->app, declared->declaration, &anew, diag);

    if (status == STATUS_OK && anew)
        status = consumer_open(&declared->consumer, diag);
    if (status == STATUS_OK && anew)
        status = rebuild_changed(host->app, declared, &report, diag);
    if (status != STATUS_OK)
        return status;
    if (anew)
        log_write(&host->app->log, LOG_INFO,
                  &(struct log_about){.consumer = declared->declaration->name},
                  "is rebuilt, as on_change says: its table had another shape "
                  "and was made anew");
    return consumer_start(&declared->consumer, diag);
}

enum status host_open(struct application *app, struct host **host_out,
                      struct diag *diag)
{
    struct host *host = mem_alloc(sizeof(*host));
    const struct declaration *declarations = script_declarations(
        app->script, &host->nworkers);
    enum status status = STATUS_OK;

    host->app = app;
    host->env = declared_consumer_env(app);
    host->env.flight = &host->flight;
    host->backoff = backoff_make(app->settings->poll_min_us, CLOCK_SECOND);
    host->detector.may_repair = app->settings->schema_create;
    host->workers = mem_alloc(host->nworkers * sizeof(*host->workers) + 1);
    for (size_t i = 0; i < host->nworkers; i++)
        declared_consumer_init(&host->workers[i].declared, app, &host->env,
                               &declarations[i]);
    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++)
        status = start_worker(host, &host->workers[i], diag);
    if (status == STATUS_OK)
        status = check_checkpoints(host, diag);
    if (status != STATUS_OK) {
        host_free(host);
        return status;
    }
    *host_out = host;
    return STATUS_OK;
}

static enum status save_all(struct host *host, struct diag *diag)
{
    enum status first = STATUS_OK;

    for (size_t i = 0; i < host->nworkers; i++) {
        enum status status = consumer_save(&host->workers[i].declared.consumer,
                                           first == STATUS_OK ? diag : NULL);

        if (first == STATUS_OK)
            first = status;
    }
    return first;
}

enum status host_close(struct host *host, struct diag *diag)
{
    enum status status = save_all(host, diag);

    host_free(host);
    return status;
}

/* --- one round
 * -------------------------------------------------------------------- */

static enum status reload_all(struct host *host, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++)
        status = consumer_reload(&host->workers[i].declared.consumer, diag);
    return status;
}

/* The commit is done, its answer thrown away: find out as after a real loss. */
static enum status drop_answer(struct host *host, struct diag *diag)
{
    bool undone;
    enum status status;

    host->lose_answer = false;
    status = flight_settle(&host->flight, &undone, diag);
    if (status != STATUS_OK)
        return status;
    host_forget_last_batch(host);
    status = db_reopen(host->app->db, diag);
    if (status == STATUS_OK)
        status = reload_all(host, diag);
    return status;
}

static void tell_fenced(struct host *host, struct worker *worker,
                        const struct diag *diag)
{
    int64_t now = clock_monotonic();

    worker->fenced++;
    if (worker->fenced_told_at != 0 &&
        now - worker->fenced_told_at < FENCED_TOLD_US)
        return;
    log_write(
        &host->app->log, LOG_WARN,
        &(struct log_about){.consumer = worker->declared.consumer.name.name},
        "%s (%lld times since this was last told)", diag->message,
        (long long)worker->fenced);
    worker->fenced = 0;
    worker->fenced_told_at = now;
}

/* Somebody asked for a rebuild: whoever comes first resets the progress. */
static enum status reset_if_asked(struct consumer *consumer, bool *worked,
                                  struct diag *diag)
{
    struct rebuild_result result;
    enum status status;

    if (consumer->asks_rebuild) {
        *worked = true;
        status = rebuild_reset_held(consumer, &result, diag);
        consumer->asks_rebuild = status != STATUS_OK;
        return status;
    }
    if (consumer->row.state != CONSUMER_REBUILDING)
        return STATUS_OK;
    *worked = true;
    return rebuild_reset(consumer, &result, diag);
}

static enum status step_worker(struct host *host, struct worker *worker,
                               bool *worked, struct diag *diag)
{
    struct consumer *consumer = &worker->declared.consumer;
    enum status status = reset_if_asked(consumer, worked, diag);

    if (status != STATUS_OK || *worked)
        return status;
    status = consumer_step(consumer, &host->mark, worked, diag);

    if (status == STATUS_OK && *worked && host->lose_answer)
        return drop_answer(host, diag);
    if (status == STATUS_FENCED) {
        tell_fenced(host, worker, diag);
        *worked = true; /* there is more to look at from where it stands */
        return consumer_reload(consumer, diag);
    }
    return status;
}

/* Who keeps the mark back is told when it has lasted for a moment, and again
 * now and then. */
static void tell_blocked(struct host *host)
{
    const struct log_about about = {.topic = TOPIC_EVENT_STORE};
    struct mark_detector *detector = &host->detector;
    int64_t now = clock_monotonic();

    if (detector->repaired)
        log_write(&host->app->log, LOG_WARN, &about,
                  "the sequence of positions had a wider CACHE and was set "
                  "back to CACHE 1");
    detector->repaired = false;
    if (detector->blocked[0] == '\0') {
        host->blocked_since = 0;
        return;
    }
    if (host->blocked_since == 0)
        host->blocked_since = now;
    if (now - host->blocked_since < BLOCKED_PATIENCE_US ||
        (host->blocked_told != 0 &&
         now - host->blocked_told < BLOCKED_AGAIN_US))
        return;
    host->blocked_told = now;
    log_write(&host->app->log, LOG_WARN, &about, "%s", detector->blocked);
}

/* While somebody still has a page below the known mark, a newer one is worth a
 * round trip only now and then. */
static bool mark_can_wait(const struct host *host)
{
    int64_t age = clock_monotonic() - host->marked_at;
    bool some = false, each = true;

    for (size_t i = 0; host->worked && i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;
        bool behind = consumer_is_behind(c, host->mark.mark);

        some |= behind;
        each &= behind || c->row.state != CONSUMER_RUNNING;
    }
    return some && age < (each ? MARK_PAUSE_LONG_US : MARK_PAUSE_US);
}

static enum status advance_mark(struct host *host, struct diag *diag)
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
                                    &host->detector, &host->mark, diag);
    host->marked_at = clock_monotonic();
    if (status == STATUS_OK)
        tell_blocked(host);
    return status;
}

static bool refresh_is_due(struct host *host)
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
static enum status refresh_states(struct host *host, struct diag *diag)
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

        if (!seen.changed[i] && seen.found[i])
            continue;
        worker->reload = true;
    }
    arena_free(&arena);
    return status;
}

static bool is_passing(enum status status)
{
    return status == STATUS_CONFLICT || status == STATUS_LOST ||
           status == STATUS_BUSY || status == STATUS_UNAVAILABLE;
}

/* The connection is no good any more: nobody else need try. */
static bool ends_round(enum status status)
{
    return status == STATUS_LOST || status == STATUS_UNAVAILABLE ||
           (status != STATUS_OK && !is_passing(status));
}

/* What does not pass by itself stops its consumer only; it is tried again now
 * and then, and told once. */
static enum status tell_stuck(struct host *host, struct worker *worker)
{
    worker->stuck = true;
    if (!worker->stuck_told)
        log_write(
            &host->app->log, LOG_ERROR,
            &(struct log_about){.consumer = worker->declared.consumer.name.name,
                                .topic = worker->declared.consumer.source},
            "stands still: %s", worker->trouble.message);
    worker->stuck_told = true;
    return STATUS_OK;
}

enum status host_step(struct host *host, struct host_progress *progress,
                      struct diag *diag)
{
    struct application *app = host->app;
    bool refresh = refresh_is_due(host);
    bool any = false;
    enum status status = advance_mark(host, diag);

    if (refresh && status == STATUS_OK)
        status = refresh_states(host, diag);
    for (size_t i = 0; i < host->nworkers && !ends_round(status); i++) {
        struct worker *worker = &host->workers[i];
        enum status own = STATUS_OK;
        bool worked = false;

        if (worker->stuck && !refresh)
            continue;
        worker->stuck = false;
        if (worker->reload) {
            own = consumer_reload(&worker->declared.consumer, &worker->trouble);
            worker->reload = own != STATUS_OK;
        }
        if (own == STATUS_OK)
            own = step_worker(host, worker, &worked, &worker->trouble);
        any |= worked;
        if (own != STATUS_OK && !is_passing(own))
            own = tell_stuck(host, worker);
        else if (own == STATUS_OK && worked)
            worker->stuck_told = false;
        /* one consumer's trouble is not another's: they all get their turn */
        if (own != STATUS_OK && status == STATUS_OK)
            status = diag_set(
                diag, own, "%s '%s': %s", worker->declared.consumer.name.type,
                worker->declared.consumer.name.name, worker->trouble.message);
    }
    progress->applied = progress->failed = 0;
    for (size_t i = 0; i < host->nworkers; i++) {
        progress->applied += host->workers[i].declared.consumer.applied;
        progress->failed += host->workers[i].declared.consumer.failed;
    }
    host->worked = status == STATUS_OK && any;
    progress->idle = status == STATUS_OK && !any;
    if (status == STATUS_OK) {
        backoff_reset(&host->backoff);
        host->conflicts = 0;
        if (host->trouble_told)
            log_write(&app->log, LOG_INFO, NULL, "the database works again");
        host->trouble_told = false;
    }
    return status;
}

/* --- going on after trouble
 * ----------------------------------------------------------- */

static void sleep_us(int64_t us)
{
    const struct timespec time = {
        .tv_sec = us / CLOCK_SECOND,
        .tv_nsec = us % CLOCK_SECOND * 1000,
    };

    nanosleep(&time, NULL); /* a signal ends it early, as it should */
}

/* Waits and makes the connection good again. It is told once, not each time. */
static enum status recover(struct host *host, enum status status,
                           struct diag *diag)
{
    struct application *app = host->app;

    /* one conflict is nothing; several mean that somebody holds the database */
    host->conflicts = status == STATUS_CONFLICT ? host->conflicts + 1 : 0;
    if (!host->trouble_told &&
        (status != STATUS_CONFLICT || host->conflicts > 1)) {
        log_write(&app->log, LOG_ERROR, NULL, "%s; trying again",
                  diag->message);
        host->trouble_told = true;
    }
    sleep_us(backoff_next(&host->backoff));
    if (status == STATUS_LOST || status == STATUS_UNAVAILABLE) {
        status = db_reopen(app->db, diag);
        if (status == STATUS_OK)
            status = reload_all(host, diag);
        return status;
    }
    return STATUS_OK;
}

static enum status report_halted(const struct host *host, struct diag *diag)
{
    struct buffer list = BUFFER_EMPTY;
    const struct consumer *first = NULL;
    size_t halted = 0, changed = 0;

    for (size_t i = 0; i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;

        if (c->row.state != CONSUMER_HALTED)
            continue;
        if (first == NULL)
            first = c;
        buffer_printf(&list, "%s%s '%s' is halted with %s",
                      halted++ > 0 ? ", " : "", c->name.type, c->name.name,
                      halt_reason_word(c->row.halt_reason));
        changed += c->row.halt_reason == HALT_DECLARATION_CHANGED;
    }
    if (changed > 0)
        diag_set(diag, STATUS_FAILED,
                 "%.1500s%s; `moontide status` shows why, and what to do",
                 list.data, list.len > 1500 ? " ..." : "");
    else if (halted > 0)
        diag_set(diag, STATUS_FAILED,
                 "%.1500s%s; `moontide status %s` shows the %s and the script "
                 "%s, and `moontide resume` or the next start tries %s again",
                 list.data, list.len > 1500 ? " ..." : "",
                 halted == 1 ? first->name.name : "CONSUMER",
                 halted == 1 ? "message" : "messages",
                 halted == 1 ? "line" : "lines", halted == 1 ? "it" : "them");
    buffer_free(&list);
    return halted > 0 ? STATUS_FAILED : STATUS_OK;
}

/* What waits for its next attempt is not done, and comes by itself. */
static enum status report_waiting(const struct host *host, struct diag *diag)
{
    const struct consumer *first = NULL;
    size_t waiting = 0;

    for (size_t i = 0; i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;

        if (!consumer_awaits_retry(c))
            continue;
        waiting++;
        if (first == NULL || c->retries.next_at < first->retries.next_at)
            first = c;
    }
    if (waiting == 0)
        return STATUS_OK;
    return diag_set(
        diag, STATUS_BUSY,
        "messages of %s '%s'%s wait for another attempt, the next one in "
        "%.1f s; `moontide status %s` shows why, and a run after that tries "
        "again",
        first->name.type, first->name.name, waiting > 1 ? " and others" : "",
        (double)(first->retries.next_at - clock_now(&host->app->clock)) /
            (double)CLOCK_SECOND,
        first->name.name);
}

enum status host_stuck(const struct host *host, struct diag *diag)
{
    for (size_t i = 0; i < host->nworkers; i++) {
        const struct worker *worker = &host->workers[i];

        if (worker->stuck)
            return diag_set(
                diag, worker->trouble.status, "%s '%s' stands still: %s",
                worker->declared.consumer.name.type,
                worker->declared.consumer.name.name, worker->trouble.message);
    }
    return STATUS_OK;
}

void host_retry_stuck(struct host *host)
{
    host->refreshed_at = 0;
    for (size_t i = 0; i < host->nworkers; i++)
        consumer_look_now(&host->workers[i].declared.consumer);
}

enum status host_run_until_idle(struct host *host,
                                const volatile sig_atomic_t *stop,
                                host_progress_fn fn, void *arg,
                                struct diag *diag)
{
    struct host_progress progress = {.idle = false};
    int tries = 0;
    enum status status;

    while (!progress.idle && !*stop) {
        status = host_step(host, &progress, diag);
        if (is_passing(status) && ++tries < RUN_TRIES)
            status = recover(host, status, diag);
        else if (status == STATUS_OK)
            tries = 0;
        if (status != STATUS_OK && (!is_passing(status) || tries >= RUN_TRIES))
            return status;
        if (fn != NULL)
            fn(arg, &progress);
    }
    status = save_all(host, diag);
    if (status != STATUS_OK || *stop)
        return status;
    /* Nobody waits here until the mark moves. */
    if (host->detector.blocked[0] != '\0' && host->blocked_told == 0)
        log_write(&host->app->log, LOG_WARN,
                  &(struct log_about){.topic = TOPIC_EVENT_STORE}, "%s",
                  host->detector.blocked);
    status = host_stuck(host, diag);
    if (status == STATUS_OK)
        status = report_halted(host, diag);
    return status == STATUS_OK ? report_waiting(host, diag) : status;
}

enum status host_run(struct host *host, const volatile sig_atomic_t *stop,
                     struct diag *diag)
{
    const struct settings *settings = host->app->settings;
    int64_t wait = settings->poll_min_us;

    while (!*stop) {
        struct host_progress progress;
        enum status status = host_step(host, &progress, diag);

        while (is_passing(status) && !*stop)
            status = recover(host, status, diag);
        if (status != STATUS_OK && !is_passing(status))
            return status;
        if (!progress.idle) {
            wait = settings->poll_min_us;
            continue;
        }
        if (!*stop)
            sleep_us(wait);
        wait = wait * 2 < settings->poll_max_us ? wait * 2
                                                : settings->poll_max_us;
    }
    return save_all(host, diag);
}

/* --- testing kit
 * ------------------------------------------------------------------------ */

void host_lose_next_answer(struct host *host)
{
    host->lose_answer = true;
}

void host_forget_last_batch(struct host *host)
{
    for (size_t i = 0; i < host->nworkers; i++)
        consumer_forget_last_batch(&host->workers[i].declared.consumer);
}
