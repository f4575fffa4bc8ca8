#include "run/start.h"

#include <time.h>

#define FIRST_PAUSE (CLOCK_SECOND / 200)
#define PAUSE_CAP   (CLOCK_SECOND / 4)

/* Hosts that start at the same time keep each other waiting for a moment, which
 * is nothing to tell of. */
#define QUIET_US (2 * CLOCK_SECOND)

static void pause_for(const struct start *start, int64_t us)
{
    const struct timespec time = {
        .tv_sec = us / CLOCK_SECOND,
        .tv_nsec = us % CLOCK_SECOND * 1000,
    };

    if (start->wait != NULL)
        (void)start->wait(start->wait_arg, us);
    else
        nanosleep(&time, NULL); /* a signal ends it early, as it should */
}

static void begin(struct start *start)
{
    if (start->began != 0)
        return;
    start->began = clock_monotonic();
    start->backoff = backoff_make(FIRST_PAUSE, PAUSE_CAP);
}

static bool is_held(enum status status)
{
    return status == STATUS_CONFLICT || status == STATUS_BUSY;
}

/* After a try that has failed: OK when there is to be another one, else how it
 * ends. */
static enum status wait_for_others(struct start *start,
                                   const struct application *app,
                                   enum status status, struct diag *diag)
{
    int64_t patience = application_patience(app->settings);
    int64_t waited = clock_monotonic() - start->began;

    if (!is_held(status))
        return status;
    if (waited >= patience && !*start->stop)
        return diag_wrap(diag, "the start has waited for %lld s",
                         (long long)(waited / CLOCK_SECOND));
    if (waited >= QUIET_US && !start->told) {
        start->told = true;
        log_write(&app->log, LOG_WARN, NULL,
                  "%s; the start waits for it, for at most %lld s",
                  diag->message, (long long)(patience / CLOCK_SECOND));
    }
    if (!*start->stop)
        pause_for(start, backoff_next(&start->backoff));
    if (*start->stop)
        return diag_set(diag, STATUS_STOPPED,
                        "stopped while the start waited for others");
    return STATUS_OK;
}

enum status start_application(struct start *start,
                              const struct settings *settings, unsigned needs,
                              struct text bundle, struct application *app,
                              struct diag *diag)
{
    enum status status = application_load(settings, needs, bundle, app, diag);
    enum status tried;

    if (status != STATUS_OK)
        return status;
    begin(start);
    do {
        tried = application_reach(app, needs, diag);
        status = wait_for_others(start, app, tried, diag);
    } while (tried != STATUS_OK && status == STATUS_OK);
    if (status != STATUS_OK)
        application_close(app);
    return status;
}

enum status start_host(struct start *start, struct application *app,
                       const struct host_options *options, struct host **host,
                       struct diag *diag)
{
    enum status status, tried;

    begin(start);
    do {
        tried = host_open(app, options, host, diag);
        status = wait_for_others(start, app, tried, diag);
    } while (tried != STATUS_OK && status == STATUS_OK);
    return status;
}
