#include "run/supervisor.h"

#include "run/supervisor_parts.h"

#include "base/log_limit.h"
#include "base/memory.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* How often it looks whether a worker hangs. */
#define CHECK_MS 50

/* A worker that is silent for so many leases has long lost its own. */
#define SILENT_LEASES 3

/* A first worker that dies before it is ready is started again so often. */
#define START_TRIES 5

/* When workers had to be killed, the end of the rest takes so long at most. */
#define LAST_MS 1000

/* The same trouble of a worker is told so often. */
#define TOLD_AGAIN_US (60 * CLOCK_SECOND)

/* --- the end ------------------------------------------------------------- */

static int alive(const struct supervisor *supervisor)
{
    int count = 0;

    for (int i = 0; i < supervisor->nworkers; i++)
        count += supervisor->workers[i].phase != WORKER_ABSENT;
    return count;
}

/* With the last handle the loop ends. */
static void close_all(struct supervisor *supervisor)
{
    if (supervisor->reloader != NULL)
        reloader_stop(supervisor->reloader);
    uv_close((uv_handle_t *)&supervisor->terminate, NULL);
    uv_close((uv_handle_t *)&supervisor->interrupt, NULL);
    uv_close((uv_handle_t *)&supervisor->check, NULL);
    uv_close((uv_handle_t *)&supervisor->deadline, NULL);
    uv_close((uv_handle_t *)&supervisor->watchdog, NULL);
    for (int i = 0; i < supervisor->nworkers; i++)
        worker_process_close(&supervisor->workers[i]);
}

/* Workers first: until they are gone somebody has to vouch for them. */
static void end_when_alone(struct supervisor *supervisor)
{
    if (!supervisor->stopping || alive(supervisor) > 0)
        return;
    if (supervisor->duties == NULL || supervisor->duties_ended)
        close_all(supervisor);
    else
        duties_stop(supervisor->duties);
}

static void on_duties_ended(void *arg)
{
    struct supervisor *supervisor = arg;

    supervisor->duties_ended = true;
    end_when_alone(supervisor);
}

/* Workers that had to be killed fail the run, whatever else has. */
static void note_overdue(struct supervisor *supervisor)
{
    if (supervisor->overdue > 0)
        diag_set(&supervisor->end, STATUS_FAILED,
                 "%d of %d workers did not end within stop_timeout and were "
                 "killed; what they had in hand is rolled back",
                 supervisor->overdue, supervisor->nworkers);
}

static void on_deadline(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;

    if (alive(supervisor) == 0) {
        log_write(&supervisor->log, LOG_WARN, NULL,
                  "the database does not answer, and the host ends without it");
        note_overdue(supervisor);
        if (supervisor->end.status == STATUS_OK)
            _exit(0);
        log_write(&supervisor->log, LOG_ERROR, NULL, "%s",
                  supervisor->end.message);
        _exit(1);
    }
    /* the rest has a moment to record that they are gone */
    (void)uv_timer_start(&supervisor->deadline, on_deadline, LAST_MS, 0);
    for (int i = 0; i < supervisor->nworkers; i++) {
        struct worker_process *worker = &supervisor->workers[i];

        supervisor->overdue += worker_process_alive(worker);
        worker_process_kill(worker, NULL);
    }
}

void supervisor_stop(struct supervisor *supervisor, const struct diag *diag)
{
    int64_t limit = supervisor->options->settings->stop_timeout_us;

    if (diag != NULL && supervisor->end.status == STATUS_OK)
        supervisor->end = *diag;
    if (supervisor->stopping)
        return;
    supervisor->stopping = true;
    reloader_stop(supervisor->reloader);
    notify_systemd_send(&supervisor->notify, "STOPPING=1");
    for (int i = 0; i < supervisor->nworkers; i++) {
        struct worker_process *worker = &supervisor->workers[i];

        (void)uv_timer_stop(&worker->restart);
        worker_process_send(worker, CHANNEL_STOP);
    }
    if (limit > 0)
        (void)uv_timer_start(&supervisor->deadline, on_deadline,
                             (uint64_t)(limit / 1000), 0);
    end_when_alone(supervisor);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct supervisor *supervisor = handle->data;

    if (supervisor->signal != 0) {
        for (int i = 0; i < supervisor->nworkers; i++)
            worker_process_kill(&supervisor->workers[i], NULL);
        _exit(128 + number);
    }
    supervisor->signal = number;
    supervisor_stop(supervisor, NULL);
}

/* --- workers come and go ------------------------------------------------- */

static void tell_running(struct supervisor *supervisor,
                         const struct channel_message *ready)
{
    log_write(&supervisor->log, LOG_INFO, NULL,
              "running %lld consumers on " TEXT_FORMAT " in %d worker%s",
              (long long)ready->number, TEXT_ARGS(ready->text),
              supervisor->nworkers, supervisor->nworkers == 1 ? "" : "s");
    notify_systemd_send(&supervisor->notify,
                        "READY=1\nSTATUS=running %lld consumers",
                        (long long)ready->number);
}

/* What it applied when it died is its failure, unless the host killed it for
 * another reason. */
static void bury(struct supervisor *supervisor, struct worker_process *worker)
{
    struct dead_worker dead = {.number = worker->number};

    if (supervisor->duties == NULL || worker_process_ended_well(worker))
        return;
    memcpy(dead.instance, worker->instance, sizeof(dead.instance));
    dead.charged = worker_process_attempt(worker, &dead.attempt, &dead.end) &&
                   (worker->hung || !worker->failed) &&
                   supervisor->overdue == 0;
    /* such deaths end with the message's budget: the next one need not wait */
    if (dead.charged && dead.attempt.kind != ATTEMPT_RESET)
        backoff_reset(&worker->backoff);
    duties_bury(supervisor->duties, &dead);
}

static void on_moved(void *arg)
{
    struct supervisor *supervisor = arg;

    for (int i = 0; i < supervisor->nworkers; i++) {
        if (supervisor->workers[i].phase == WORKER_RUNNING)
            worker_process_send(&supervisor->workers[i], CHANNEL_WAKE);
    }
}

static void start_duties(struct supervisor *supervisor)
{
    const struct supervisor_options *options = supervisor->options;
    const struct duties_events events = {
        .moved = on_moved,
        .ended = on_duties_ended,
        .arg = supervisor,
    };
    struct diag diag;

    if (duties_open(&supervisor->loop, options->settings, options->quiet,
                    &events, &supervisor->duties, &diag) != STATUS_OK)
        supervisor_stop(supervisor, &diag);
    else
        reloader_record_start(supervisor->reloader);
}

void supervisor_worker_ready(struct supervisor *supervisor,
                             struct worker_process *worker,
                             const struct channel_message *ready)
{
    if (worker->ever_ready)
        log_write(&supervisor->log, LOG_INFO, NULL, "worker %d runs again",
                  worker->number);
    worker->ever_ready = true;
    /* what was told before this reached the others only */
    worker_process_send(worker, CHANNEL_WAKE);
    reloader_worker_ready(supervisor->reloader, worker);
    if (supervisor->started || supervisor->stopping)
        return;
    supervisor->started = true;
    tell_running(supervisor, ready);
    /* tables are made and scripts are good: the others find all in place */
    for (int i = 0; i < supervisor->nworkers; i++) {
        if (supervisor->workers[i].phase == WORKER_ABSENT)
            worker_process_start(&supervisor->workers[i]);
    }
    start_duties(supervisor);
}

/* Several workers may have the same trouble; it is told once. */
static void tell_end(struct supervisor *supervisor,
                     const struct worker_process *worker)
{
    int64_t now = clock_monotonic();
    char how[DIAG_MESSAGE_SIZE];

    if (worker_process_ended_well(worker)) {
        log_write(&supervisor->log, LOG_WARN, NULL,
                  "worker %d was told to end; another one takes its place",
                  worker->number);
        return;
    }
    worker_process_how(worker, how, sizeof(how));
    if (strcmp(how, supervisor->told) == 0 &&
        now - supervisor->told_at < TOLD_AGAIN_US)
        return;
    memcpy(supervisor->told, how, sizeof(how));
    supervisor->told_at = now;
    log_write(&supervisor->log, LOG_ERROR, NULL, "worker %d %s: %s",
              worker->number,
              worker->ready_at != 0 ? "has ended" : "cannot start", how);
}

/* Whether the host cannot start because of how this one has ended. */
static bool ends_start(struct supervisor *supervisor,
                       const struct worker_process *worker, struct diag *diag)
{
    char how[DIAG_MESSAGE_SIZE];

    if (supervisor->started || worker->ready_at != 0)
        return false;
    if (worker->failed) {
        *diag = worker->failure;
        return true;
    }
    if (++supervisor->crashes < START_TRIES)
        return false;
    worker_process_how(worker, how, sizeof(how));
    diag_set(diag, STATUS_FAILED,
             "the first worker has died %d times before it was ready, and the "
             "host gives up: %s",
             supervisor->crashes, how);
    return true;
}

/* An orderly stop that fails, fails the run. */
static void note_end(struct supervisor *supervisor,
                     const struct worker_process *worker)
{
    char how[DIAG_MESSAGE_SIZE];

    if (worker_process_ended_well(worker) || supervisor->overdue > 0 ||
        supervisor->end.status != STATUS_OK)
        return;
    worker_process_how(worker, how, sizeof(how));
    diag_set(&supervisor->end,
             worker->failed ? worker->failure.status : STATUS_FAILED,
             "worker %d did not stop in order: %s", worker->number, how);
}

static void tell_outage(struct supervisor *supervisor, int64_t now)
{
    char line[OUTAGE_LINE_SIZE];

    while (outage_line(&supervisor->outage, supervisor->nworkers, now, line))
        log_write(&supervisor->log, LOG_ERROR, NULL, "%s", line);
}

void supervisor_worker_trouble(struct supervisor *supervisor,
                               struct worker_process *worker,
                               const struct channel_message *trouble)
{
    char line[OUTAGE_LINE_SIZE];

    if (worker->troubled == (trouble != NULL))
        return;
    worker->troubled = trouble != NULL;
    if (trouble != NULL) {
        outage_begin(&supervisor->outage, (enum status)trouble->number,
                     trouble->text, clock_monotonic());
        return;
    }
    if (!outage_end(&supervisor->outage))
        return;
    tell_outage(supervisor, INT64_MAX);
    outage_over(&supervisor->outage, supervisor->nworkers, line);
    log_write(&supervisor->log, LOG_INFO, NULL, "%s", line);
}

void supervisor_worker_gone(struct supervisor *supervisor,
                            struct worker_process *worker)
{
    struct diag diag;

    /* nobody else says that it is over */
    if (worker->troubled && outage_end(&supervisor->outage)) {
        tell_outage(supervisor, INT64_MAX);
        supervisor->outage = (struct outage){.now = 0};
    }
    worker->troubled = false;
    bury(supervisor, worker);
    reloader_worker_gone(supervisor->reloader, worker);
    if (supervisor->stopping) {
        note_end(supervisor, worker);
        end_when_alone(supervisor);
        return;
    }
    if (ends_start(supervisor, worker, &diag)) {
        supervisor_stop(supervisor, &diag);
        return;
    }
    tell_end(supervisor, worker);
    worker_process_restart(worker);
}

/* --- timers -------------------------------------------------------------- */

static void on_check(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    const struct settings *settings = supervisor->options->settings;
    const struct worker_watch_limits limits = {
        .handler = settings->limit_time_us,
        .silent = settings->lease_heartbeat_us,
        .hung = SILENT_LEASES * settings->lease_duration_us + CLOCK_SECOND * 30,
    };
    int64_t beaten_at;
    int count = 0;

    log_tell(&supervisor->log, false);
    tell_outage(supervisor, clock_monotonic());
    for (int i = 0; i < supervisor->nworkers; i++) {
        struct worker_process *worker = &supervisor->workers[i];

        if (worker_process_check(worker, &limits))
            supervisor->vouched[count++] = worker->instance;
    }
    if (supervisor->duties == NULL || supervisor->duties_ended)
        return;
    beaten_at = duties_vouch(supervisor->duties, supervisor->vouched,
                             (size_t)count);
    for (int i = 0; i < supervisor->nworkers; i++)
        worker_process_vouched(&supervisor->workers[i], beaten_at);
}

static void on_watchdog(uv_timer_t *timer)
{
    const struct supervisor *supervisor = timer->data;

    notify_systemd_send(&supervisor->notify, "WATCHDOG=1");
}

/* --- the run ------------------------------------------------------------- */

static void open_loop(struct supervisor *supervisor)
{
    uv_loop_t *loop = &supervisor->loop;

    /* these fail for want of descriptors or memory only, with an abort or with
     * a host that cannot be stopped; the latter is told by its caller */
    (void)uv_signal_init(loop, &supervisor->terminate);
    (void)uv_signal_init(loop, &supervisor->interrupt);
    (void)uv_timer_init(loop, &supervisor->check);
    (void)uv_timer_init(loop, &supervisor->deadline);
    (void)uv_timer_init(loop, &supervisor->watchdog);
    supervisor->terminate.data = supervisor->interrupt.data = supervisor;
    supervisor->check.data = supervisor->deadline.data = supervisor;
    supervisor->watchdog.data = supervisor;
    for (int i = 0; i < supervisor->nworkers; i++)
        worker_process_init(&supervisor->workers[i], supervisor, i + 1);
}

static enum status watch_signals(struct supervisor *supervisor,
                                 struct diag *diag)
{
    int failure = uv_signal_start(&supervisor->terminate, on_signal, SIGTERM);

    if (failure == 0)
        failure = uv_signal_start(&supervisor->interrupt, on_signal, SIGINT);
    if (failure == 0)
        return STATUS_OK;
    return diag_set(diag, STATUS_FAILED, "cannot watch signals: %s",
                    uv_strerror(failure));
}

static enum status run_loop(struct supervisor *supervisor, struct diag *diag)
{
    uint64_t watchdog = (uint64_t)supervisor->notify.watchdog_us / 1000;
    enum status status = watch_signals(supervisor, diag);

    if (status != STATUS_OK)
        return status;
    if (watchdog > 0)
        (void)uv_timer_start(&supervisor->watchdog, on_watchdog, 0, watchdog);
    (void)uv_timer_start(&supervisor->check, on_check, CHECK_MS, CHECK_MS);
    reloader_start(supervisor->reloader);
    (void)uv_run(&supervisor->loop, UV_RUN_DEFAULT);
    tell_outage(supervisor, INT64_MAX);
    note_overdue(supervisor);
    if (supervisor->end.status == STATUS_OK && supervisor->started)
        log_write(&supervisor->log, LOG_INFO, NULL, "stopped");
    *diag = supervisor->end;
    return supervisor->end.status;
}

static void open_log(struct supervisor *supervisor)
{
    const struct settings *settings = supervisor->options->settings;

    supervisor->clock = (struct clock){.offset_us = settings->clock_offset_us};
    supervisor->log = (struct log){
        .out = stderr,
        .level = settings->log_level,
        .format = settings->log_format,
        .clock = &supervisor->clock,
        .limit = log_limit_new(),
    };
    if (supervisor->options->quiet && supervisor->log.level < LOG_WARN)
        supervisor->log.level = LOG_WARN;
}

enum status supervisor_run(const struct supervisor_options *options,
                           struct diag *diag)
{
    struct supervisor *supervisor = mem_alloc(sizeof(*supervisor));
    const struct settings *settings = options->settings;
    enum status status = STATUS_OK;
    int failure;

    supervisor->config = SHARED_MEMORY_NONE;
    supervisor->options = options;
    supervisor->nworkers = options->workers;
    open_log(supervisor);
    if (notify_systemd_open(&supervisor->notify, diag) != STATUS_OK)
        log_write(&supervisor->log, LOG_WARN, NULL,
                  "the service manager is told nothing: %s", diag->message);
    /* what it was started with goes to the workers with its environment: a URL
     * with a password is not for everybody's eyes */
    if (options->database != NULL)
        (void)setenv("MOONTIDE_DATABASE", options->database, 1);
    if (settings->config_path != NULL)
        status = shared_memory_of("moontide-config",
                                  buffer_text(&settings->config),
                                  &supervisor->config, diag);
    if (status != STATUS_OK)
        goto fail_loop;
    failure = uv_loop_init(&supervisor->loop);
    if (failure != 0) {
        status = diag_set(diag, STATUS_FAILED, "cannot make an event loop: %s",
                          uv_strerror(failure));
        goto fail_loop;
    }
    supervisor->workers = mem_alloc((size_t)options->workers *
                                    sizeof(*supervisor->workers));
    supervisor->vouched = mem_alloc((size_t)options->workers *
                                    sizeof(*supervisor->vouched));
    open_loop(supervisor);
    status = reloader_open(supervisor, &supervisor->reloader, diag);
    if (status == STATUS_OK)
        status = run_loop(supervisor, diag);
    else
        close_all(supervisor);
    (void)uv_run(&supervisor->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&supervisor->loop);
    reloader_free(supervisor->reloader);
    duties_close(supervisor->duties);
    mem_free(supervisor->vouched);
    mem_free(supervisor->workers);
fail_loop:
    shared_memory_close(&supervisor->config);
    notify_systemd_close(&supervisor->notify);
    log_tell(&supervisor->log, true);
    log_limit_free(supervisor->log.limit);
    mem_free(supervisor);
    return status;
}
