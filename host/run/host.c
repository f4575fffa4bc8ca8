#include "run/host.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "consumer/rebuild.h"
#include "consumer/standing.h"
#include "consumer/start.h"
#include "run/declared_table.h"
#include "run/host_parts.h"
#include "run/rebuild_run.h"
#include "topic/notify.h"

/* One that is fenced again and again says so at most this often. */
#define FENCED_TOLD_US (10 * CLOCK_SECOND)

/* The first wait after a conflict or a lost connection, however far apart the
 * looks for new events are: nobody tells when the trouble is over. */
#define RECOVER_FIRST_US (CLOCK_SECOND / 200)

/* So long a stop that has no limit waits for what others hold. */
#define CLOSE_PATIENCE_US (5 * CLOCK_SECOND)

/* --- open and close ------------------------------------------------------- */

void host_free_workers(struct host *host)
{
    for (size_t i = 0; i < host->nworkers; i++) {
        struct declared_consumer *declared = &host->workers[i].declared;

        host->before.applied += declared->consumer.applied;
        host->before.failed += declared->consumer.failed;
        host->before.fired += declared->consumer.fired;
        declared_consumer_free(declared);
    }
    mem_free(host->workers);
    host->workers = NULL;
    host->nworkers = 0;
}

static void host_free(struct host *host)
{
    host_free_workers(host);
    host_lease_free(host);
    compactor_free(&host->compactor);
    host_topics_free(host);
    host_fill_forget(host);
    mem_free(host);
}

/* A checkpoint behind the topic's end would pass over what comes there: the
 * topic was restored from an older copy, or the row was changed by hand. */
static enum status check_checkpoint(const struct host *host,
                                    const struct worker *worker,
                                    struct diag *diag)
{
    const struct consumer *c = &worker->declared.consumer;
    const struct high_water_mark *mark = &worker->topic->watch.mark;

    /* a mark above the end is told by whoever moves the mark */
    if (mark->mark > mark->end)
        return STATUS_OK;
    for (int p = 0; p < c->stored.partitions; p++)
        if (c->stored.position[p] > mark->end)
            return diag_set(
                diag, STATUS_REFUSED,
                "the checkpoint of %s '%s' in partition %d stands at %lld "
                "(table %s), and the topic '%s' ends at position %lld: the "
                "events were restored from an older copy; restore both from "
                "one copy, or start the consumer anew",
                c->name.type, c->name.name, p, (long long)c->stored.position[p],
                host->env.names->table[TABLE_CHECKPOINTS], c->source,
                (long long)mark->end);
    return STATUS_OK;
}

static enum status read_marks(struct host *host, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < host->ntopics; i++)
        status = high_water_mark_read(host->app->db, host->app->catalog,
                                      host->topics[i]->name,
                                      &host->topics[i]->watch.mark, diag);
    return status;
}

static enum status check_checkpoints(struct host *host, struct diag *diag)
{
    enum status status = read_marks(host, diag);

    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++)
        status = check_checkpoint(host, &host->workers[i], diag);
    return status;
}

/* It applies meanwhile: what it tells no topic then is filled in later. */
static enum status switch_own(struct host *host, struct worker *worker,
                              struct diag *diag)
{
    bool ready = true;
    enum status status = STATUS_OK;

    if (worker->unswitched)
        status = host_switch_own(host, worker->declared.declaration, &ready,
                                 diag);
    worker->unswitched = status != STATUS_OK || !ready;
    return status;
}

/* A table that on_change lets be made anew comes first: nothing else can. */
static enum status start_worker(struct host *host, struct worker *worker,
                                struct diag *diag)
{
    struct declared_consumer *declared = &worker->declared;
    struct rebuild_report report;
    bool anew, ready = true;
    enum status status = declared_table_on_change(
        host->app, declared->declaration, &anew, diag);

    if (status == STATUS_OK)
        status = host_switch_source(host, declared->declaration, &ready, diag);
    if (status != STATUS_OK || !ready)
        return status;
    if (anew)
        status = start_open(&declared->consumer, diag);
    if (status == STATUS_OK && anew)
        status = rebuild_changed(host->app, declared, &report, diag);
    if (status != STATUS_OK)
        return status;
    if (anew)
        log_write(&host->app->log, LOG_INFO,
                  &(struct log_about){.consumer = declared->declaration->name},
                  "is rebuilt, as on_change says: its table had another shape "
                  "and was made anew");
    status = start_consumer(&declared->consumer, diag);
    if (status == STATUS_OK)
        status = host_keep_source(host, declared->declaration, &ready, diag);
    if (status != STATUS_OK || !ready)
        return status;
    worker->unswitched = declared->declaration->topic;
    status = switch_own(host, worker, diag);
    worker->started = status == STATUS_OK;
    return status;
}

/* Whoever is read comes first, so that its batches are known when its topic is
 * switched on. Nobody reads in a circle. */
static enum status start_in_order(struct host *host, struct worker *worker,
                                  struct diag *diag)
{
    const char *read = read_model_topic_projection(
        worker->declared.declaration->source);
    enum status status = STATUS_OK;

    for (size_t i = 0; read != NULL && i < host->nworkers; i++) {
        struct worker *other = &host->workers[i];

        if (strcmp(other->declared.declaration->name, read) == 0)
            status = start_in_order(host, other, diag);
    }
    if (status != STATUS_OK || worker->started)
        return status;
    return start_worker(host, worker, diag);
}

/* One that came with a reload. Nobody has looked at the checkpoints of a new
 * consumer yet, when the others' were. */
enum status host_start_late(struct host *host, struct worker *worker,
                            struct diag *diag)
{
    enum status status = start_worker(host, worker, diag);

    if (status != STATUS_OK || !worker->added || !worker->started)
        return status;
    status = read_marks(host, diag);
    if (status == STATUS_OK)
        status = check_checkpoint(host, worker, diag);
    worker->started = status == STATUS_OK;
    return status;
}

enum status host_open(struct application *app,
                      const struct host_options *options,
                      struct host **host_out, struct diag *diag)
{
    struct host *host = mem_alloc(sizeof(*host));
    const struct declaration *declarations = script_declarations(
        app->script, &host->nworkers);
    enum status status = STATUS_OK;

    host->app = app;
    if (options != NULL)
        host->options = *options;
    host->env = declared_consumer_env(app);
    host->env.flight = &host->flight;
    host->env.slot = host->options.slot;
    script_watch(app->script, host->options.slot);
    host->env.instance = host->lease.coordinator.id;
    coordinator_init(&host->lease.coordinator, app->db, app->catalog,
                     &(struct coordinator_times){
                         .duration = app->settings->lease_duration_us,
                         .heartbeat = app->settings->lease_heartbeat_us,
                         .rebalance = app->settings->lease_rebalance_us,
                     },
                     app->settings->partitions, &app->ids,
                     host->options.instance_id);
    host->backoff = backoff_make(RECOVER_FIRST_US, CLOCK_SECOND);
    host->pace = pace_make(app->settings->poll_min_us,
                           app->settings->poll_max_us);
    host_topics_init(host);
    host->workers = mem_alloc(host->nworkers * sizeof(*host->workers) + 1);
    for (size_t i = 0; i < host->nworkers; i++) {
        declared_consumer_init(&host->workers[i].declared, app, &host->env,
                               &declarations[i]);
        host->workers[i].declared.consumer.keeps_halt = host->options.replaces;
        host->workers[i].topic = host_topic_of(host, declarations[i].source);
    }
    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++)
        status = start_in_order(host, &host->workers[i], diag);
    if (status == STATUS_OK)
        status = check_checkpoints(host, diag);
    if (status == STATUS_OK)
        status = host_lease_open(host, diag);
    if (status != STATUS_OK) {
        host_free(host);
        return status;
    }
    *host_out = host;
    return STATUS_OK;
}

enum status host_save(struct host *host, struct diag *diag)
{
    enum status first = STATUS_OK;

    for (size_t i = 0; i < host->nworkers; i++) {
        struct worker *worker = &host->workers[i];
        enum status status = standing_save(&worker->declared.consumer,
                                           &worker->trouble);

        status = host_bear(host, worker, status,
                           first == STATUS_OK ? diag : NULL);
        if (first == STATUS_OK)
            first = status;
    }
    return first;
}

static enum status leave(struct host *host, struct diag *diag)
{
    enum status status = host_save(host, diag);
    enum status left = host_lease_close(host,
                                        status == STATUS_OK ? diag : NULL);

    return status == STATUS_OK ? left : status;
}

/* Half of the time for a stop: the other one is for what was in hand. */
static int64_t close_patience(const struct host *host)
{
    int64_t limit = host->app->settings->stop_timeout_us;

    return limit > 0 ? limit / 2 : CLOSE_PATIENCE_US;
}

/* What became of the last commit is not known before it is read back. */
static enum status leave_again(struct host *host, bool *lost, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (*lost)
        status = db_reopen(host->app->db, diag);
    if (*lost && status == STATUS_OK)
        status = host_reload_all(host, diag);
    if (status == STATUS_OK) {
        *lost = false;
        status = leave(host, diag);
    }
    *lost |= status == STATUS_LOST;
    return status;
}

/* What another program holds for a moment, or a connection that is lost just
 * then, is no reason to leave leases behind, which others would have to wait
 * for. A server that is away is. */
enum status host_close(struct host *host, struct diag *diag)
{
    int64_t until = clock_monotonic() + close_patience(host);
    bool lost = false;
    enum status status = leave_again(host, &lost, diag);

    while ((status == STATUS_CONFLICT || status == STATUS_LOST) &&
           clock_monotonic() < until) {
        host_pause(host, backoff_next(&host->backoff));
        status = leave_again(host, &lost, diag);
    }
    host_free(host);
    return status;
}

/* --- one round
 * -------------------------------------------------------------------- */

enum status host_reload_all(struct host *host, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++) {
        struct worker *worker = &host->workers[i];

        if (!worker->started)
            continue;
        status = consumer_reload(&worker->declared.consumer, &worker->trouble);
        status = host_bear(host, worker, status, diag);
    }
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
    host_lease_look_soon(host);
    status = db_reopen(host->app->db, diag);
    if (status == STATUS_OK)
        status = host_reload_all(host, diag);
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

    if (declared_table_made(host->app, worker->declared.declaration, &status,
                            diag))
        status = reset_if_asked(consumer, worked, diag);
    if (status != STATUS_OK || *worked)
        return status;
    status = consumer_step(consumer, &worker->topic->watch.mark, worked, diag);

    if (status == STATUS_OK && *worked && host->lose_answer)
        return drop_answer(host, diag);
    if (status == STATUS_FENCED) {
        tell_fenced(host, worker, diag);
        host_lease_look_soon(host);
        *worked = true; /* there is more to look at from where it stands */
        return consumer_reload(consumer, diag);
    }
    return status;
}

/* The connection is no good any more: nobody else need try. */
static bool ends_round(enum status status)
{
    return status == STATUS_LOST || status == STATUS_UNAVAILABLE ||
           (status != STATUS_OK && !backoff_helps(status));
}

void host_start_workers(struct host *host)
{
    for (size_t i = 0; i < host->nworkers; i++) {
        struct worker *worker = &host->workers[i];
        enum status status = STATUS_OK;

        if (!worker->started)
            status = host_start_late(host, worker, &worker->trouble);
        if (status != STATUS_OK && !backoff_helps(status))
            host_stand_still(host, worker);
        if (ends_round(status))
            return; /* the next round goes on with it */
    }
}

enum status host_step(struct host *host, struct host_progress *progress,
                      struct diag *diag)
{
    struct application *app = host->app;
    bool refresh = host_refresh_is_due(host);
    bool any = false;
    enum status status = refresh ? host_end_standstills(host, diag) : STATUS_OK;

    if (status == STATUS_OK)
        status = host_lease_step(host, diag);
    if (status == STATUS_OK)
        status = host_advance_marks(host, diag);
    if (refresh)
        log_tell(&app->log, false);
    if (refresh && status == STATUS_OK)
        status = host_refresh_states(host, diag);
    if (refresh)
        host_fill_forget(host);
    if (status == STATUS_OK)
        status = host_fill_topics(host, &any, diag);
    for (size_t i = 0; i < host->nworkers && !ends_round(status); i++) {
        struct worker *worker = &host->workers[i];
        enum status own = STATUS_OK;
        bool worked = false;

        if (worker->stuck)
            continue;
        if (!worker->started)
            own = host_start_late(host, worker, &worker->trouble);
        if (own == STATUS_OK && !worker->started)
            continue; /* it waits for its topic to be emptied or filled */
        if (own == STATUS_OK && worker->unswitched)
            own = switch_own(host, worker, &worker->trouble);
        worker->reload |= worker->declared.consumer.leases.changed;
        if (own == STATUS_OK && worker->reload) {
            own = consumer_reload(&worker->declared.consumer, &worker->trouble);
            worker->reload = own != STATUS_OK;
        }
        if (own == STATUS_OK)
            own = step_worker(host, worker, &worked, &worker->trouble);
        any |= worked;
        if (own == STATUS_OK && worked) {
            worker->stuck_told = false;
            backoff_reset(&worker->still);
        }
        /* one consumer's trouble is not another's: they all get their turn */
        own = host_bear(host, worker, own, status == STATUS_OK ? diag : NULL);
        if (status == STATUS_OK)
            status = own;
    }
    progress->applied = host->before.applied;
    progress->failed = host->before.failed;
    progress->fired = host->before.fired;
    for (size_t i = 0; i < host->nworkers; i++) {
        progress->applied += host->workers[i].declared.consumer.applied;
        progress->failed += host->workers[i].declared.consumer.failed;
        progress->fired += host->workers[i].declared.consumer.fired;
    }
    if (status == STATUS_OK)
        status = host_retain(host, any, diag);
    if (status == STATUS_OK)
        status = host_compact(host, diag);
    any |= host_fill_empties(host, !any);
    host->worked = status == STATUS_OK && any;
    progress->idle = status == STATUS_OK && !any && !host->marks_wait &&
                     !host_retains_more(host);
    return status;
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
        standing_forget_last_batch(&host->workers[i].declared.consumer);
}
