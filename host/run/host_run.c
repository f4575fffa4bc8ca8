#include "consumer/fire.h"
#include "consumer/retry_turn.h"
#include "run/host_parts.h"
#include "topic/notify.h"

#include <time.h>

/* How often in a row a run to idle meets a lost connection or a conflict
 * before it gives up. */
#define RUN_TRIES 20

/* How long a wait may be without a look at whether to stop. */
#define STOP_LOOK_US (CLOCK_SECOND / 4)

/* How often a run to idle looks whether others are done, too. */
#define OTHERS_PAUSE_US (CLOCK_SECOND / 50)

/* So long conflicts are nothing to tell of. */
#define CONFLICTS_QUIET_US (2 * CLOCK_SECOND)

/* --- going on after trouble ----------------------------------------------- */

/* True when there is something to look at. */
static bool wait_us(struct host *host, int64_t us)
{
    const struct timespec time = {
        .tv_sec = us / CLOCK_SECOND,
        .tv_nsec = us % CLOCK_SECOND * 1000,
    };

    if (host->options.wait != NULL)
        return host->options.wait(host->options.wait_arg, us);
    if (host->wake != NULL)
        return wake_wait(host->wake, -1, us);
    if (us > 0)
        nanosleep(&time, NULL); /* a signal ends it early, as it should */
    return false;
}

void host_pause(struct host *host, int64_t us)
{
    int64_t now = clock_monotonic();
    int64_t until = now + us;

    while (now < until && wait_us(host, until - now))
        now = clock_monotonic();
}

/* A signal that comes just before a wait does not end it, so it is none for
 * long. */
static bool wait_idle(struct host *host, int64_t us,
                      const volatile sig_atomic_t *stop)
{
    int64_t now = clock_monotonic();
    int64_t until = now + host_next_due(host, us);

    while (!*stop && now < until) {
        int64_t left = until - now;

        if (wait_us(host, left < STOP_LOOK_US ? left : STOP_LOOK_US))
            return true;
        now = clock_monotonic();
    }
    return false;
}

/* Two hosts may lock each other out now and then, and each runs again. When
 * that does not end, somebody holds the database. */
static bool is_trouble(struct host *host, enum status status)
{
    int64_t now = clock_monotonic();

    if (status != STATUS_CONFLICT) {
        host->conflicted_at = 0;
        return true;
    }
    if (host->conflicted_at == 0)
        host->conflicted_at = now;
    return now - host->conflicted_at >= CONFLICTS_QUIET_US;
}

static void end_trouble(struct host *host)
{
    backoff_reset(&host->backoff);
    host->conflicted_at = 0;
    host_tell_trouble(host, NULL);
}

/* Waits and makes the connection good again. It is told once, not each time. */
static enum status recover(struct host *host, enum status status,
                           struct diag *diag)
{
    struct application *app = host->app;

    if (!is_trouble(host, status)) {
        log_write(&app->log, LOG_DEBUG, NULL, "%s; running it again",
                  diag->message);
    } else {
        host_tell_trouble(host, diag);
    }
    host_pause(host, backoff_next(&host->backoff));
    if (status == STATUS_LOST || status == STATUS_UNAVAILABLE) {
        host_lease_look_soon(host);
        status = db_reopen(app->db, diag);
        if (status == STATUS_OK)
            status = host_reload_all(host, diag);
        return status;
    }
    return STATUS_OK;
}

/* --- run to idle ---------------------------------------------------------- */

void host_retry_stuck(struct host *host)
{
    host->refreshed_at = 0;
    for (size_t i = 0; i < host->nworkers; i++) {
        host->workers[i].still_until = 0;
        retry_turn_now(&host->workers[i].declared.consumer);
        fire_look_now(&host->workers[i].declared.consumer);
    }
}

static void tell_waiting(struct host *host)
{
    if (!host->lease.waits_told)
        log_write(&host->app->log, LOG_INFO, NULL,
                  "waits for partitions that other hosts apply");
    host->lease.waits_told = true;
}

/* What others have in hand belongs to what is there, and so does what an
 * instance has left behind that has not lapsed yet. */
static enum status wait_for_others(struct host *host, bool *done,
                                   struct diag *diag)
{
    enum status status = host_lease_others_done(host, done, diag);

    if (status != STATUS_OK || (*done && !host_marks_are_left(host)))
        return status;
    if (!*done)
        tell_waiting(host);
    *done = false;
    host_pause(host, OTHERS_PAUSE_US);
    return STATUS_OK;
}

/* Once this instance has nothing left to apply. */
static enum status wind_up(struct host *host, const volatile sig_atomic_t *stop,
                           bool *done, struct diag *diag)
{
    enum status status = host_save(host, diag);

    if (status == STATUS_OK)
        status = wait_for_others(host, done, diag);
    if (status != STATUS_OK || !*done)
        return status;
    /* what was read up to here need not be kept for it */
    host->retainer.looked = host->saga_retainer.looked = false;
    host->retainer.once = true;
    do {
        status = host_retain(host, false, diag);
    } while (status == STATUS_OK && host_retains_more(host) && !*stop);
    return status == STATUS_OK ? host_compact_all(host, stop, diag) : status;
}

enum status host_run_until_idle(struct host *host,
                                const volatile sig_atomic_t *stop,
                                host_progress_fn fn, void *arg,
                                struct diag *diag)
{
    struct host_progress progress = {.idle = false};
    enum status status = STATUS_OK;
    bool done = false;
    int tries = 0;

    while (!done && !*stop) {
        status = host_step(host, &progress, diag);
        if (fn != NULL)
            fn(arg, &progress);
        if (status == STATUS_OK && progress.idle)
            status = wind_up(host, stop, &done, diag);
        if (status == STATUS_OK) {
            end_trouble(host);
            tries = 0;
        } else {
            done = false;
            if (backoff_helps(status) && ++tries < RUN_TRIES)
                status = recover(host, status, diag);
            if (status != STATUS_OK &&
                (!backoff_helps(status) || tries >= RUN_TRIES))
                return status;
        }
    }
    if (*stop)
        return STATUS_OK; /* what it read is saved when it is closed */
    /* Nobody waits here until the mark moves. */
    host_tell_blocked_now(host);
    status = host_stuck(host, diag);
    return status == STATUS_OK ? host_report(host, diag) : status;
}

enum status host_drain(struct host *host, struct host_progress *progress,
                       struct diag *diag)
{
    int tries = 0;
    enum status status;

    do {
        status = host_step(host, progress, diag);
        if (status == STATUS_OK) {
            end_trouble(host);
            tries = 0;
        } else if (status == STATUS_LOST && ++tries < RUN_TRIES) {
            status = recover(host, status, diag);
        }
        if (status == STATUS_OK && progress->idle &&
            host_marks_are_left(host)) {
            host_pause(host, OTHERS_PAUSE_US);
            progress->idle = false;
        }
    } while (status == STATUS_OK && !progress->idle);
    return status;
}

/* --- run for good --------------------------------------------------------- */

static void look_now(struct host *host)
{
    host->look_at = 0;
    pace_begin(&host->pace);
}

static void look_later(struct host *host)
{
    host->look_at = host->marked_at +
                    pace_next(&host->pace, host_marks_are_behind(host));
}

static enum status run_on(struct host *host, const volatile sig_atomic_t *stop,
                          struct diag *diag)
{
    look_now(host);
    while (!*stop) {
        struct host_progress progress = {.idle = false};
        int64_t began = clock_monotonic();
        enum status status = STATUS_OK;

        if (host->options.between != NULL)
            status = host->options.between(host->options.between_arg, host,
                                           diag);
        if (status == STATUS_OK)
            status = host_step(host, &progress, diag);
        if (status == STATUS_OK)
            end_trouble(host);
        while (backoff_helps(status) && !*stop)
            status = recover(host, status, diag);
        if (status != STATUS_OK && !backoff_helps(status))
            return status;
        if (!progress.idle) {
            look_now(host);
            (void)wait_us(host, 0); /* takes what is told */
            continue;
        }
        if (host->marked_at >= began)
            look_later(host);
        if (wait_idle(host, host->look_at - clock_monotonic(), stop))
            look_now(host);
    }
    host->look_at = 0;
    return STATUS_OK;
}

enum status host_run(struct host *host, const volatile sig_atomic_t *stop,
                     struct diag *diag)
{
    struct application *app = host->app;
    enum status status;

    if (host->options.wait == NULL)
        host->wake = wake_open(
            app->settings, notify_channel(app->db, app->catalog), &app->log);
    status = run_on(host, stop, diag);
    wake_close(host->wake);
    host->wake = NULL;
    return status;
}
