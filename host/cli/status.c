#include "cli/cli.h"
#include "cli/output.h"
#include "cli/stop.h"

#include "base/json.h"
#include "run/status.h"

#include <inttypes.h>
#include <time.h>

#define WATCH_SECONDS 2

/* --- JSON ---------------------------------------------------------------- */

static void write_string(struct buffer *out, bool *first, const char *key,
                         const char *value)
{
    json_write_key(out, first, key);
    json_write_string(out, text_of(value));
}

static void write_integer(struct buffer *out, bool *first, const char *key,
                          int64_t value)
{
    json_write_key(out, first, key);
    buffer_printf(out, "%" PRId64, value);
}

static void write_time(struct buffer *out, bool *first, const char *key,
                       int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    write_string(out, first, key, text);
}

static void write_topic(struct buffer *out, const struct status_topic *topic)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "name", topic->name);
    write_integer(out, &first, "mark", topic->mark);
    write_integer(out, &first, "end", topic->end);
    write_integer(out, &first, "start", topic->start);
    buffer_append_char(out, '}');
}

static void write_failure(struct buffer *out,
                          const struct status_failure *failure)
{
    bool first = true;

    if (failure->position == 0) {
        buffer_append_string(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    write_integer(out, &first, "position", failure->position);
    write_string(out, &first, "key", failure->key);
    write_string(out, &first, "status", failure->status);
    write_integer(out, &first, "attempts", failure->count);
    write_string(out, &first, "reason", failure->reason);
    write_time(out, &first, "recorded_at", failure->recorded_at);
    buffer_append_char(out, '}');
}

static void write_failed(struct buffer *out,
                         const struct status_consumer *consumer)
{
    for (size_t i = 0; i < consumer->nfailed; i++) {
        const struct status_failure *failed = &consumer->failed[i];
        bool first = true;

        buffer_append_string(out, i > 0 ? ",{" : "{");
        write_integer(out, &first, "position", failed->position);
        write_string(out, &first, "key", failed->key);
        write_string(out, &first, "type", failed->type);
        write_string(out, &first, "status", failed->status);
        write_integer(out, &first, "attempts", failed->count);
        write_string(out, &first, "reason", failed->reason);
        buffer_append_char(out, '}');
    }
}

/* Which parts of the declaration differ from what is stored. */
static void write_change(struct buffer *out, bool *first,
                         const struct fingerprint_change *change)
{
    bool any = false;

    json_write_key(out, first, "changed");
    buffer_append_char(out, '[');
    for (int p = 0; p < FINGERPRINT_PARTS; p++) {
        if (!change->part[p])
            continue;
        buffer_printf(out, "%s\"%s\"", any ? "," : "",
                      fingerprint_part_word(p));
        any = true;
    }
    buffer_append_char(out, ']');
    json_write_key(out, first, "rebuild_due");
    buffer_append_string(
        out, change->verdict == FINGERPRINT_REBUILD_DUE ? "true" : "false");
}

static void write_consumer(struct buffer *out,
                           const struct status_consumer *consumer, bool alone)
{
    bool first = true;
    bool inner = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "type", consumer->type);
    write_string(out, &first, "name", consumer->name);
    write_string(out, &first, "source", consumer->source);
    write_string(out, &first, "state", consumer->state);
    if (consumer->halt_reason[0] != '\0')
        write_string(out, &first, "halt_reason", consumer->halt_reason);
    if (consumer->registered)
        write_time(out, &first, "state_since", consumer->state_since);
    json_write_key(out, &first, "declared");
    buffer_append_string(out, consumer->declared ? "true" : "false");
    write_change(out, &first, &consumer->change);
    write_integer(out, &first, "epoch", consumer->epoch);
    write_integer(out, &first, "position", consumer->position);
    json_write_key(out, &first, "lag");
    if (consumer->lag == STATUS_UNKNOWN)
        buffer_append_string(out, "null");
    else
        buffer_printf(out, "{\"messages\":%" PRId64 ",\"seconds\":%.3f}",
                      consumer->lag,
                      (double)consumer->lag_us / (double)CLOCK_SECOND);
    json_write_key(out, &first, "undelivered");
    buffer_append_char(out, '{');
    for (size_t i = 0; i < consumer->nundelivered; i++)
        write_integer(out, &inner, consumer->undelivered[i].status,
                      consumer->undelivered[i].count);
    buffer_append_char(out, '}');
    json_write_key(out, &first, "last_error");
    write_failure(out, &consumer->failure);
    if (alone) {
        json_write_key(out, &first, "failed");
        buffer_append_char(out, '[');
        write_failed(out, consumer);
        buffer_append_char(out, ']');
    }
    buffer_append_char(out, '}');
}

static void write_sentences(struct buffer *out, const char *const *sentences,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, text_of(sentences[i]));
    }
}

static void write_json(const struct status_report *report, bool alone,
                       struct buffer *out)
{
    buffer_append_string(out, "{\"topics\":[");
    for (size_t i = 0; i < report->ntopics; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_topic(out, &report->topics[i]);
    }
    buffer_append_string(out, "],\"consumers\":[");
    for (size_t i = 0; i < report->nconsumers; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_consumer(out, &report->consumers[i], alone);
    }
    buffer_append_string(out, "],\"problems\":[");
    write_sentences(out, report->problems, report->nproblems);
    buffer_append_string(out, "],\"notes\":[");
    write_sentences(out, report->notes, report->nnotes);
    buffer_append_string(out, "]}\n");
}

/* --- text ---------------------------------------------------------------- */

static void print_problems(struct cli *cli, const struct status_report *report)
{
    struct buffer line = BUFFER_EMPTY;

    for (size_t i = 0; i < report->nproblems; i++) {
        buffer_clear(&line);
        buffer_append_string(
            &line, cli->color_out ? "\033[1;31mproblem:\033[0m " : "problem: ");
        output_safe(&line, text_of(report->problems[i]));
        fprintf(cli->out, "%s\n", line.data);
    }
    if (report->nproblems > 0)
        fputc('\n', cli->out);
    buffer_free(&line);
}

static void print_notes(struct cli *cli, const struct status_report *report)
{
    struct buffer line = BUFFER_EMPTY;

    if (report->nnotes > 0)
        fputc('\n', cli->out);
    for (size_t i = 0; i < report->nnotes; i++) {
        buffer_clear(&line);
        buffer_append_string(&line, "note: ");
        output_safe(&line, text_of(report->notes[i]));
        fprintf(cli->out, "%s\n", line.data);
    }
    buffer_free(&line);
}

static void print_topics(struct cli *cli, const struct status_report *report)
{
    static const char *const headings[] = {"topic", ">mark", ">end", NULL};
    struct output_table table;

    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < report->ntopics; i++) {
        output_cell_string(&table, report->topics[i].name);
        output_cell_int64(&table, report->topics[i].mark);
        output_cell_int64(&table, report->topics[i].end);
    }
    output_table_end(&table, cli->out);
}

static void print_lag(struct output_table *table,
                      const struct status_consumer *consumer)
{
    struct buffer cell = BUFFER_EMPTY;

    if (consumer->lag == STATUS_UNKNOWN) {
        output_cell_string(table, "?");
        output_cell_string(table, "?");
        return;
    }
    output_grouped(&cell, consumer->lag);
    if (consumer->lag >= STATUS_LAG_LIMIT)
        buffer_append_char(&cell, '+');
    output_cell(table, buffer_text(&cell));
    buffer_clear(&cell);
    if (consumer->lag > 0)
        output_duration(&cell, consumer->lag_us);
    else
        buffer_append_char(&cell, '-');
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

static void print_undelivered(struct output_table *table,
                              const struct status_consumer *consumer)
{
    struct buffer cell = BUFFER_EMPTY;

    for (size_t i = 0; i < consumer->nundelivered; i++)
        buffer_printf(&cell, "%s%" PRId64 " %s", i > 0 ? ", " : "",
                      consumer->undelivered[i].count,
                      consumer->undelivered[i].status);
    if (consumer->nundelivered == 0)
        buffer_append_char(&cell, '-');
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

static void print_consumers(struct cli *cli, const struct status_report *report)
{
    static const char *const headings[] = {"consumer", "state",   ">position",
                                           ">lag",     ">behind", "undelivered",
                                           NULL};
    struct output_table table;

    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < report->nconsumers; i++) {
        const struct status_consumer *consumer = &report->consumers[i];

        output_cell_string(&table, consumer->name);
        output_cell_string(&table, consumer->state);
        output_cell_int64(&table, consumer->position);
        print_lag(&table, consumer);
        print_undelivered(&table, consumer);
    }
    output_table_end(&table, cli->out);
}

static void print_failed(struct cli *cli,
                         const struct status_consumer *consumer)
{
    static const char *const headings[] = {
        ">position", "key", "type", "status", ">failures", "reason", NULL};
    struct output_table table;
    int64_t undelivered = 0;

    if (consumer->nfailed == 0)
        return;
    fputc('\n', cli->out);
    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < consumer->nfailed; i++) {
        const struct status_failure *failed = &consumer->failed[i];

        output_cell_int64(&table, failed->position);
        output_cell_string(&table, failed->key);
        output_cell_string(&table, failed->type);
        output_cell_string(&table, failed->status);
        output_cell_int64(&table, failed->count);
        output_cell_string(&table, failed->reason);
    }
    output_table_end(&table, cli->out);
    for (size_t i = 0; i < consumer->nundelivered; i++)
        undelivered += consumer->undelivered[i].count;
    if (consumer->nfailed == STATUS_FAILED_LIMIT &&
        undelivered > STATUS_FAILED_LIMIT)
        fprintf(cli->out, "the first %d of those that failed\n",
                STATUS_FAILED_LIMIT);
}

static void print_report(struct cli *cli, const struct status_report *report,
                         bool alone)
{
    struct buffer json = BUFFER_EMPTY;

    if (cli->json) {
        write_json(report, alone, &json);
        fwrite(json.data, 1, json.len, cli->out);
        buffer_free(&json);
        return;
    }
    print_problems(cli, report);
    print_topics(cli, report);
    fputc('\n', cli->out);
    if (report->nconsumers > 0)
        print_consumers(cli, report);
    else
        fputs("no consumer\n", cli->out);
    for (size_t i = 0; alone && i < report->nconsumers; i++)
        print_failed(cli, &report->consumers[i]);
    print_notes(cli, report);
}

/* --- reading ------------------------------------------------------------- */

static enum status show(struct cli *cli, struct application *app,
                        const struct status_request *request, struct diag *diag)
{
    struct status_report report;
    enum status status = status_read(app, request, &report, diag);

    if (status != STATUS_OK)
        return status;
    print_report(cli, &report, request->consumer != NULL);
    status_report_free(&report);
    return cli_flush(cli, diag);
}

static enum status watch(struct cli *cli, struct application *app,
                         const struct status_request *request,
                         struct diag *diag)
{
    const volatile sig_atomic_t *stop = stop_on_signals();
    struct timespec pause = {.tv_sec = WATCH_SECONDS};
    enum status status = STATUS_OK;

    while (status == STATUS_OK && !*stop) {
        if (cli->color_out && !cli->json) /* home, and clear what is below */
            fputs("\033[H\033[2J", cli->out);
        status = show(cli, app, request, diag);
        if (status == STATUS_OK && !*stop)
            nanosleep(&pause, NULL);
    }
    return status;
}

enum status cli_status(struct cli *cli, struct diag *diag)
{
    struct diag script_diag = {.status = STATUS_OK};
    struct status_request request = {
        .consumer = cli->nargs > 0 ? cli->args[0] : NULL,
    };
    struct application app;
    struct application scripts;
    enum status status;
    bool loaded;

    status = cli_open(cli, APPLICATION_READ_ONLY, &app, diag);
    if (status != STATUS_OK)
        return status;
    /* a broken script is a problem to show, not a reason to show nothing */
    loaded = cli_open(cli, APPLICATION_SCRIPTS, &scripts, &script_diag) ==
             STATUS_OK;
    if (loaded)
        request.declarations = script_declarations(scripts.script,
                                                   &request.ndeclarations);
    else
        request.script_error = script_diag.message;

    if (cli_given(cli, "watch"))
        status = watch(cli, &app, &request, diag);
    else
        status = show(cli, &app, &request, diag);
    if (loaded)
        application_close(&scripts);
    application_close(&app);
    return status;
}
