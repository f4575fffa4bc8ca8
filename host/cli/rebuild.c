#include "cli/cli.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "run/operate_json.h"
#include "run/rebuild_run.h"

#include <inttypes.h>
#include <time.h>

/* How often --wait looks how far the replay has come. */
#define LOOK_EVERY_US (CLOCK_SECOND / 5)
/* After so long without a move it says so. */
#define PATIENCE_US (5 * CLOCK_SECOND)

static void print_sentence(struct buffer *out,
                           const struct rebuild_order *order,
                           const struct rebuild_report *report)
{
    buffer_printf(out, "projection '%s' ", order->consumer);
    if (order->key != NULL && report->applied == 0)
        buffer_printf(out,
                      "has no message of the key '%s', and so no read model",
                      order->key);
    else if (order->key != NULL)
        buffer_printf(out, "has made '%s' anew from %" PRId64 " %s", order->key,
                      report->applied,
                      report->applied == 1 ? "message" : "messages");
    else if (order->cancel && report->asked.changed)
        buffer_append_string(out, "is not rebuilt; it runs on as it was");
    else if (order->cancel || !report->reset.changed)
        buffer_printf(out, "%s: nothing changed",
                      report->asked.unchanged != NULL
                          ? report->asked.unchanged
                          : "was reset by somebody else at this moment");
    else if (report->reset.replay_through == CHECKPOINT_NONE)
        buffer_printf(out,
                      "had read nothing: there is nothing to replay (epoch "
                      "%" PRId64 ")",
                      report->reset.epoch);
    else
        buffer_printf(out,
                      "is reset and replays up to position %" PRId64
                      " (epoch %" PRId64 "); a host with these scripts does it",
                      report->reset.replay_through, report->reset.epoch);
}

static void print_report(struct cli *cli, const struct rebuild_order *order,
                         const struct rebuild_report *report)
{
    struct buffer out = BUFFER_EMPTY;
    struct buffer line = BUFFER_EMPTY;

    if (cli->json) {
        operate_json_rebuild(&out, order, report);
        buffer_append_char(&out, '\n');
    } else if (!cli->quiet) {
        print_sentence(&line, order, report);
        output_safe(&out, buffer_text(&line));
        buffer_append_char(&out, '\n');
    }
    fwrite(buffer_text(&out).data, 1, out.len, cli->out);
    buffer_free(&line);
    buffer_free(&out);
}

/* What --wait knows of the looks before. */
struct waiting {
    int64_t done;     /* where the replay stood ... */
    int64_t moved_at; /* monotonic: ... since then */
    int without_host; /* looks in a row that saw no host */
    bool told_host;   /* since there was one */
    bool told;
};

/* Only a running host replays, and one that has just begun is not seen at
 * once. */
#define LOOKS_WITHOUT_HOST 2

static void tell_no_host(struct cli *cli, struct waiting *waiting,
                         struct progress *shown,
                         const struct rebuild_progress *now,
                         const char *consumer)
{
    if (now->hosts > 0) {
        waiting->without_host = 0;
        waiting->told_host = false;
        return;
    }
    if (++waiting->without_host < LOOKS_WITHOUT_HOST || waiting->told_host)
        return;
    waiting->told_host = true;
    progress_end(shown);
    fprintf(cli->err,
            "no host runs projection '%s': its replay stands at position "
            "%" PRId64 " of %" PRId64
            " until one does with these scripts (`moontide run`, or `moontide "
            "reload` where one goes by older ones); still waiting\n",
            consumer, now->done, now->through);
}

static void tell_no_move(struct cli *cli, struct waiting *waiting,
                         struct progress *shown,
                         const struct rebuild_progress *now,
                         const char *consumer)
{
    int64_t at = clock_monotonic();

    if (now->done != waiting->done) {
        waiting->done = now->done;
        waiting->moved_at = at;
    }
    if (waiting->told || now->hosts == 0 ||
        at - waiting->moved_at < PATIENCE_US)
        return;
    waiting->told = true;
    progress_end(shown);
    fprintf(cli->err,
            "projection '%s' has not moved from position %" PRId64
            " for %d s; `moontide status %s` says what it is at; still "
            "waiting\n",
            consumer, now->done, (int)(PATIENCE_US / CLOCK_SECOND), consumer);
}

/* Looks until the replay is over. A signal ends the looking, not the replay. */
static enum status wait_for_end(struct cli *cli, struct application *app,
                                const char *consumer, struct diag *diag)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_US * 1000};
    const volatile sig_atomic_t *stop = stop_on_signals();
    struct rebuild_progress now = {.replaying = true};
    struct waiting waiting = {.done = -1, .moved_at = clock_monotonic()};
    struct progress shown;
    enum status status = STATUS_OK;

    progress_start(&shown, cli, "positions");
    while (status == STATUS_OK && !*stop) {
        status = rebuild_progress_read(app, consumer, &now, diag);
        if (status == STATUS_CONFLICT)
            status = STATUS_OK;
        if (!now.replaying && now.state != CONSUMER_REBUILDING)
            break;
        if (status == STATUS_OK &&
            (now.state == CONSUMER_HALTED || now.state == CONSUMER_PAUSED))
            status = diag_set(diag, STATUS_FAILED,
                              "projection '%s' is %s and replays no further; "
                              "`moontide status %s` says why",
                              consumer, consumer_state_word(now.state),
                              consumer);
        progress_part(&shown, now.done, now.through);
        if (status == STATUS_OK && !cli->quiet) {
            tell_no_host(cli, &waiting, &shown, &now, consumer);
            tell_no_move(cli, &waiting, &shown, &now, consumer);
        }
        nanosleep(&pause, NULL);
    }
    progress_end(&shown);
    if (status == STATUS_OK && !*stop && !cli->quiet && !cli->json)
        fprintf(cli->out, "projection '%s' is rebuilt: its replay is over\n",
                consumer);
    if (status != STATUS_OK || !*stop)
        return status;
    return diag_set(diag, STATUS_BUSY,
                    "stopped waiting at position %" PRId64 " of %" PRId64
                    "; the replay goes on in the hosts",
                    now.done, now.through);
}

enum status cli_rebuild(struct cli *cli, struct diag *diag)
{
    const struct rebuild_order order = {
        .consumer = cli->args[0],
        .key = cli_value(cli, "key"),
        .cancel = cli_given(cli, "cancel"),
        .restart = cli_given(cli, "restart"),
    };
    bool wait = cli_given(cli, "wait");
    struct application app;
    struct rebuild_report report;
    enum status status;

    if (order.key != NULL && order.key[0] == '\0')
        return diag_set(diag, STATUS_USAGE, "--key: a key is not empty");
    if (order.cancel && (order.key != NULL || wait || order.restart))
        return diag_set(diag, STATUS_USAGE, "--cancel goes with no other");
    if (order.key != NULL && (wait || order.restart))
        return diag_set(diag, STATUS_USAGE,
                        "--key is done at once: there is nothing to wait for "
                        "or to restart");
    status = cli_open(cli, APPLICATION_ROWS | APPLICATION_SCRIPTS, &app, diag);
    if (status != STATUS_OK)
        return status;
    status = rebuild_run(&app, &order, &report, diag);
    if (status == STATUS_OK)
        print_report(cli, &order, &report);
    if (status == STATUS_OK && wait)
        status = wait_for_end(cli, &app, order.consumer, diag);
    application_close(&app);
    return status;
}
