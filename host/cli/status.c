#include "cli/cli.h"
#include "cli/status_json.h"
#include "cli/status_print.h"
#include "cli/stop.h"

#include "run/backoff.h"
#include "run/status_rate.h"

#include <time.h>

#define WATCH_DEFAULT (2 * CLOCK_SECOND)
#define WATCH_MIN     (CLOCK_SECOND / 10)
#define WATCH_MAX     (86400 * CLOCK_SECOND)
#define NAP           (CLOCK_SECOND / 20) /* a signal is seen within it */

/* Between the two looks that tell how fast a replay goes. */
#define BETWEEN_LOOKS (3 * CLOCK_SECOND / 10)

struct look {
    struct cli *cli;
    struct application *app;
    struct status_request request;
    const volatile sig_atomic_t *stop;
};

static void sleep_us(int64_t us, const volatile sig_atomic_t *stop)
{
    int64_t end = clock_monotonic() + us;
    int64_t left;

    while (!*stop && (left = end - clock_monotonic()) > 0) {
        struct timespec pause = {.tv_nsec = (long)(left < NAP ? left : NAP) *
                                            1000};

        nanosleep(&pause, NULL);
    }
}

static enum status print_report(struct cli *cli,
                                const struct status_report *report, bool alone,
                                struct diag *diag)
{
    struct buffer json = BUFFER_EMPTY;

    if (cli->json) {
        status_json_write(report, alone, &json);
        fwrite(json.data, 1, json.len, cli->out);
        buffer_free(&json);
    } else {
        status_print(report, alone, cli->color_out, cli->out);
    }
    return cli_flush(cli, diag);
}

static enum status show_once(struct look *look, struct diag *diag)
{
    struct status_report first, second;
    struct status_report *shown = &first;
    enum status status = status_read(look->app, &look->request, &first, diag);

    if (status != STATUS_OK)
        return status;
    if (status_rate_is_worth_it(&first)) {
        struct status_request again = look->request;

        again.before = &first;
        sleep_us(BETWEEN_LOOKS, look->stop);
        status = status_read(look->app, &again, &second, diag);
        shown = &second;
    }
    if (status == STATUS_OK) {
        status = print_report(look->cli, shown, look->request.consumer != NULL,
                              diag);
        if (shown == &second)
            status_report_free(&second);
    }
    status_report_free(&first);
    return status;
}

/* "2", "0.5" or "500ms". */
static enum status watch_interval(const struct cli *cli, int64_t *interval,
                                  struct diag *diag)
{
    const char *text = cli_value(cli, "watch");

    *interval = WATCH_DEFAULT;
    if (text == NULL)
        return STATUS_OK;
    if (clock_parse_duration(text_of(text), interval, diag) == STATUS_OK &&
        *interval >= WATCH_MIN && *interval <= WATCH_MAX)
        return STATUS_OK;
    return diag_set(
        diag, STATUS_USAGE,
        "--watch takes seconds from 0.1 to 86400 or text like \"2m\", not "
        "'%.100s'",
        text);
}

/* Over the picture before: what is longer or lower than the new one goes. */
static enum status redraw(struct look *look, const struct status_report *report,
                          struct diag *diag)
{
    struct cli *cli = look->cli;

    if (cli->terminal_out && !cli->json)
        fputs("\033[H\033[2J", cli->out);
    return print_report(cli, report, look->request.consumer != NULL, diag);
}

/* The picture of a database that cannot be looked at: the reason is what is
 * wrong, and nothing else is known. The next look connects anew. */
static enum status show_away(struct look *look, enum status why,
                             struct diag *diag)
{
    const struct diag reason = *diag;
    const char *problem = reason.message;
    struct status_report report = {
        .arena = ARENA_EMPTY,
        .problems = &problem,
        .nproblems = 1,
    };
    enum status status = redraw(look, &report, diag);

    if (status == STATUS_OK &&
        (why == STATUS_LOST || why == STATUS_UNAVAILABLE)) {
        status = db_reopen(look->app->db, diag);
        if (backoff_helps(status))
            status = STATUS_OK;
    }
    return status;
}

static enum status watch(struct look *look, int64_t interval, struct diag *diag)
{
    struct status_report reports[2]; /* the one before, and the one in hand */
    struct status_request request = look->request;
    enum status status = STATUS_OK;
    size_t looks = 0;

    while (status == STATUS_OK && !*look->stop) {
        struct status_report *now = &reports[looks % 2];
        struct status_report *before = &reports[(looks + 1) % 2];

        request.before = looks > 0 ? before : NULL;
        status = status_read(look->app, &request, now, diag);
        if (status == STATUS_OK) {
            if (looks > 0)
                status_report_free(before);
            looks++;
            status = redraw(look, now, diag);
        } else if (backoff_helps(status)) {
            status = show_away(look, status, diag);
        }
        if (status == STATUS_OK)
            sleep_us(interval, look->stop);
    }
    if (looks > 0)
        status_report_free(&reports[(looks - 1) % 2]);
    return status;
}

enum status cli_status(struct cli *cli, struct diag *diag)
{
    struct diag script_diag = {.status = STATUS_OK};
    struct application app;
    struct application scripts;
    struct look look = {
        .cli = cli,
        .app = &app,
        .request = {.consumer = cli->nargs > 0 ? cli->args[0] : NULL},
        .stop = stop_on_signals(),
    };
    int64_t interval;
    enum status status = watch_interval(cli, &interval, diag);
    bool loaded;

    if (status == STATUS_OK)
        status = cli_open(cli, APPLICATION_READ_ONLY, &app, diag);
    if (status != STATUS_OK)
        return status;
    /* a broken script is a problem to show, not a reason to show nothing */
    loaded = cli_open(cli, APPLICATION_SCRIPTS, &scripts, &script_diag) ==
             STATUS_OK;
    if (loaded)
        look.request.declarations = script_declarations(
            scripts.script, &look.request.ndeclarations);
    else
        look.request.script_error = script_diag.message;

    status = cli_given(cli, "watch") ? watch(&look, interval, diag)
                                     : show_once(&look, diag);
    if (loaded)
        application_close(&scripts);
    application_close(&app);
    return status;
}
