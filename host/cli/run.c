#include "cli/cli.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"

#include "base/json.h"
#include "db/db.h"
#include "db/url.h"
#include "run/host.h"
#include "run/start.h"
#include "run/supervisor.h"
#include "run/undeclared.h"

#include <inttypes.h>

/* What the progress callback keeps. */
struct run_progress {
    struct host_progress last;
    struct progress line;
};

static void on_progress(void *arg, const struct host_progress *progress)
{
    struct run_progress *run = arg;

    run->last = *progress;
    progress_show(&run->line, progress->applied);
}

static void print_summary(struct cli *cli, const struct host_progress *total,
                          int64_t elapsed_us)
{
    double seconds = (double)elapsed_us / (double)CLOCK_SECOND;
    double rate = seconds > 0 ? (double)total->applied / seconds : 0;
    struct buffer line = BUFFER_EMPTY;

    if (cli->json) {
        fprintf(cli->out,
                "{\"applied\":%" PRId64 ",\"failed\":%" PRId64
                ",\"fired\":%" PRId64 ",\"seconds\":%.3f}\n",
                total->applied, total->failed, total->fired, seconds);
        return;
    }
    if (cli->quiet)
        return;
    buffer_append_string(&line, "applied ");
    output_grouped(&line, total->applied);
    buffer_printf(&line, " message%s in %.1f s (",
                  total->applied == 1 ? "" : "s", seconds);
    output_grouped(&line, (int64_t)rate);
    buffer_append_string(&line, "/s)");
    if (total->fired > 0) {
        buffer_append_string(&line, ", fired ");
        output_grouped(&line, total->fired);
        buffer_printf(&line, " deadline%s", total->fired == 1 ? "" : "s");
    }
    if (total->failed > 0) {
        buffer_append_string(&line, ", failed ");
        output_grouped(&line, total->failed);
    }
    fprintf(cli->err, "%s\n", line.data);
    buffer_free(&line);
}

static enum status run_until_idle(struct cli *cli, struct host *host,
                                  const volatile sig_atomic_t *stop,
                                  struct diag *diag)
{
    struct run_progress run = {.last = {.applied = 0}};
    int64_t start = clock_monotonic();
    enum status status;

    progress_start(&run.line, cli, "messages applied");
    status = host_run_until_idle(host, stop, on_progress, &run, diag);
    progress_end(&run.line);
    if (status == STATUS_STOPPED)
        status = STATUS_OK;
    if (status == STATUS_OK || status == STATUS_FAILED)
        print_summary(cli, &run.last, clock_monotonic() - start);
    return status;
}

static enum status run_forever(struct application *app, struct host *host,
                               const volatile sig_atomic_t *stop,
                               struct diag *diag)
{
    size_t count = 0;
    enum status status;

    (void)script_declarations(app->script, &count);
    log_write(&app->log, LOG_INFO, NULL, "running %zu consumers on %s", count,
              db_url_shown(app->db));
    status = host_run(host, stop, diag);
    if (status == STATUS_STOPPED)
        status = STATUS_OK;
    if (status == STATUS_OK)
        log_write(&app->log, LOG_INFO, NULL, "stopped");
    return status;
}

/* In this process, without a supervisor. */
static enum status run_here(struct cli *cli, struct diag *diag)
{
    const volatile sig_atomic_t *stop = stop_on_signals();
    struct start start = {.stop = stop};
    const struct settings *settings;
    struct diag close_diag = {.status = STATUS_OK}, ignored;
    struct application app;
    struct host *host;
    enum status status = cli_settings(cli, &settings, diag);
    enum status closed;

    if (status != STATUS_OK)
        return status;
    stop_within(settings->stop_timeout_us);
    status = start_application(&start, settings,
                               APPLICATION_DATABASE | APPLICATION_SCRIPTS |
                                   APPLICATION_TABLES,
                               TEXT_NONE, &app, diag);
    if (status != STATUS_OK)
        return status == STATUS_STOPPED ? STATUS_OK : status;
    if (cli->quiet && app.log.level < LOG_WARN)
        app.log.level = LOG_WARN;
    status = start_host(&start, &app, NULL, &host, diag);
    if (status == STATUS_OK) {
        /* worth a warning, and no reason not to run */
        (void)!undeclared_tell_scripts(&app, &ignored);
        if (cli_given(cli, "until-idle"))
            status = run_until_idle(cli, host, stop, diag);
        else
            status = run_forever(&app, host, stop, diag);
        closed = host_close(host, &close_diag);
        if (status == STATUS_OK && closed != STATUS_OK) {
            status = closed;
            *diag = close_diag;
        }
    }
    application_close(&app);
    return status == STATUS_STOPPED ? STATUS_OK : status;
}

enum status cli_run(struct cli *cli, struct diag *diag)
{
    struct supervisor_options options = {
        .quiet = cli->quiet,
        .config = cli->config,
        .database = cli->database,
    };
    const char *refused;
    int64_t workers;
    enum status status = cli_settings(cli, &options.settings, diag);

    if (status == STATUS_OK)
        status = cli_integer(cli, "workers", options.settings->workers, 0, 1024,
                             &workers, diag);
    if (status != STATUS_OK)
        return status;
    refused = settings_refuse_workers(options.settings, (int)workers);
    if (refused != NULL)
        return diag_set(diag, STATUS_USAGE, "--workers %d: %s", (int)workers,
                        refused);
    /* nobody else could see a database in memory */
    if (workers == 0 || cli_given(cli, "until-idle") ||
        db_url_is_memory(options.settings->database))
        return run_here(cli, diag);
    options.workers = (int)workers;
    return supervisor_run(&options, diag);
}
