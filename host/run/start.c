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

/* A database that was never there is told at once: most likely its URL is
 * wrong. One that was there comes back. */
static bool is_passing(struct start *start, enum status status)
{
    start->lost |= status == STATUS_LOST;
    return status == STATUS_CONFLICT || status == STATUS_BUSY ||
           status == STATUS_LOST ||
           (start->lost && status == STATUS_UNAVAILABLE);
}

/* After a try that has failed: OK when there is to be another one, else how it
 * ends. */
static enum status wait_for_others(struct start *start,
                                   const struct application *app,
                                   enum status status, struct diag *diag)
{
    int64_t patience = application_patience(app->settings);
    int64_t waited = clock_monotonic() - start->began;

    if (!is_passing(start, status))
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

/* What a try before this one has lost has to be opened anew. */
static enum status connect_again(struct application *app, enum status before,
                                 struct diag *diag)
{
    if (before != STATUS_LOST && before != STATUS_UNAVAILABLE)
        return STATUS_OK;
    return db_reopen(app->db, diag);
}

enum status start_host(struct start *start, struct application *app,
                       const struct host_options *options, struct host **host,
                       struct diag *diag)
{
    enum status tried = STATUS_OK;
    enum status status;

    begin(start);
    do {
        tried = connect_again(app, tried, diag);
        if (tried == STATUS_OK)
            tried = host_open(app, options, host, diag);
        status = wait_for_others(start, app, tried, diag);
    } while (tried != STATUS_OK && status == STATUS_OK);
    return status;
}
