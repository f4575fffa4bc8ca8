#include "cli/append_batch.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"

#include "base/json_member.h"
#include "topic/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_MAX INT64_C(100000) /* events of one transaction */

/* Writers queue for positions and streams, so a transaction takes no more
 * unless it is told to. */
#define BATCH_USUAL INT64_C(500)

/* What a verb says of the events it wrote, and where they can be seen. */
struct verb_words {
    const char *done;
    const char *look;
};

static const struct verb_words words[] = {
    [NDJSON_APPEND] = {"appended", "moontide events"},
    [NDJSON_EMIT] = {"emitted", "moontide events --topic " TOPIC_EVENT_CAPTURE},
};

/* What is committed so far. */
struct totals {
    int64_t written;
    int64_t repeated;
    int64_t first_position; /* 0: none */
    int64_t last_position;
    int64_t line; /* all events up to it are committed */
};

struct run {
    enum ndjson_kind kind;
    struct cli *cli;
    struct application *app;
    const char *name; /* of the input, for messages */
    struct ndjson *reader;
    struct append_batch batch;
    struct totals totals;
};

static void count_results(struct run *run)
{
    struct totals *totals = &run->totals;

    for (size_t i = 0; i < run->batch.count; i++) {
        const struct append_result *result = &run->batch.results[i];

        if (result->repeated) {
            totals->repeated++;
            continue;
        }
        totals->written++;
        if (totals->first_position == 0)
            totals->first_position = result->position;
        totals->last_position = result->position;
    }
    totals->line = ndjson_line(run->reader);
}

/* Adds what was kept, so that a person knows where to go on. */
static enum status say_what_was_kept(const struct run *run, struct diag *diag)
{
    const struct totals *totals = &run->totals;
    struct diag cause = *diag;
    int64_t line = ndjson_line(run->reader);

    if (run->batch.unknown)
        return diag_set(diag, cause.status,
                        "%s (whether lines %" PRId64 " to %" PRId64
                        " are committed is not known: look with `%s --after "
                        "%" PRId64 "` before going on)",
                        cause.message, totals->line + 1, line,
                        words[run->kind].look, totals->last_position);
    if (totals->line == 0)
        return diag_set(diag, cause.status, "%s (nothing was %s)",
                        cause.message, words[run->kind].done);
    if (line <= totals->line)
        line = totals->line + 1;
    return diag_set(diag, cause.status,
                    "%s (nothing of lines %" PRId64 " to %" PRId64
                    " was kept; up to line %" PRId64 " all is committed, "
                    "%" PRId64 " %s and %" PRId64
                    " there already: go on with line %" PRId64 ")",
                    cause.message, totals->line + 1, line, totals->line,
                    totals->written, words[run->kind].done, totals->repeated,
                    totals->line + 1);
}

static enum status write_batch(struct run *run, struct diag *diag)
{
    size_t bad = 0;
    enum status status = append_batch_write(&run->batch, run->app, &bad, diag);

    if (status == STATUS_OK)
        count_results(run);
    else if (bad < run->batch.count)
        diag_wrap(diag, "%s:%" PRId64, run->name, run->batch.lines[bad]);
    return status;
}

static enum status append_all(struct run *run, struct diag *diag)
{
    const volatile sig_atomic_t *stop = stop_on_signals();
    struct progress progress;
    enum status status = STATUS_OK;
    bool ended = false;

    progress_start(&progress, run->cli, "events");
    while (!ended && status == STATUS_OK) {
        if (*stop) {
            status = diag_set(diag, STATUS_STOPPED, "stopped by a signal");
            break;
        }
        status = append_batch_read(&run->batch, run->reader, stop, &ended,
                                   diag);
        if (status == STATUS_OK && run->batch.count > 0)
            status = write_batch(run, diag);
        progress_show(&progress, run->totals.written + run->totals.repeated);
    }
    progress_end(&progress);
    return status == STATUS_OK ? status : say_what_was_kept(run, diag);
}

static void print_json(const struct run *run, struct buffer *out)
{
    const struct totals *totals = &run->totals;
    bool first = true;

    buffer_append_char(out, '{');
    json_member_int64(out, &first, words[run->kind].done, totals->written);
    json_member_int64(out, &first, "repeated", totals->repeated);
    json_member_int64_if(out, &first, "first_position",
                         totals->first_position > 0, totals->first_position);
    json_member_int64_if(out, &first, "last_position",
                         totals->last_position > 0, totals->last_position);
    buffer_append_string(out, "}\n");
}

static void print_text(const struct run *run, struct buffer *out)
{
    const struct totals *totals = &run->totals;

    buffer_printf(out, "%s ", words[run->kind].done);
    output_grouped(out, totals->written);
    buffer_append_string(out, totals->written == 1 ? " event" : " events");
    if (totals->written == 1)
        buffer_printf(out, ", position %" PRId64, totals->first_position);
    else if (totals->written > 1)
        buffer_printf(out, ", positions %" PRId64 " to %" PRId64,
                      totals->first_position, totals->last_position);
    if (totals->repeated > 0) {
        buffer_append_string(out, "; ");
        output_grouped(out, totals->repeated);
        buffer_append_string(out, totals->repeated == 1
                                      ? " was there already"
                                      : " were there already");
    }
    buffer_append_char(out, '\n');
}

static void print_totals(const struct run *run)
{
    struct buffer out = BUFFER_EMPTY;

    if (run->cli->json)
        print_json(run, &out);
    else if (!run->cli->quiet)
        print_text(run, &out);
    fwrite(buffer_text(&out).data, 1, out.len, run->cli->out);
    buffer_free(&out);
}

static enum status open_input(const struct cli *cli, const char **name, int *fd,
                              struct diag *diag)
{
    struct stat about;

    *name = "standard input";
    *fd = STDIN_FILENO;
    if (cli->nargs == 0 || strcmp(cli->args[0], "-") == 0)
        return STATUS_OK;
    *name = cli->args[0];
    *fd = open(cli->args[0], O_RDONLY | O_CLOEXEC);
    if (*fd >= 0 && fstat(*fd, &about) == 0 && S_ISDIR(about.st_mode)) {
        close(*fd);
        return diag_set(diag, STATUS_USAGE, "%s is a folder; give a file",
                        *name);
    }
    if (*fd < 0)
        return diag_set(diag, STATUS_USAGE, "cannot open %s: %s", *name,
                        strerror(errno));
    return STATUS_OK;
}

static enum status run_verb(struct cli *cli, enum ndjson_kind kind,
                            struct diag *diag)
{
    const struct settings *settings;
    struct application app;
    struct run run = {.kind = kind, .cli = cli, .app = &app};
    int64_t batch;
    int fd;
    enum status status;

    status = cli_settings(cli, &settings, diag);
    if (status != STATUS_OK)
        return status;
    status = cli_integer(cli, "batch",
                         settings->batch < BATCH_USUAL ? settings->batch
                                                       : BATCH_USUAL,
                         1, BATCH_MAX, &batch, diag);
    if (status != STATUS_OK)
        return status;
    status = open_input(cli, &run.name, &fd, diag);
    if (status != STATUS_OK)
        return status;
    status = cli_open(cli, APPLICATION_DATABASE | APPLICATION_EVENT_TYPES, &app,
                      diag);
    if (status != STATUS_OK)
        goto close_input;

    run.reader = ndjson_open(kind, fd, run.name, settings->limit_payload);
    append_batch_init(&run.batch, kind, (size_t)batch);
    status = append_all(&run, diag);
    if (status == STATUS_OK)
        print_totals(&run);
    append_batch_free(&run.batch);
    ndjson_close(run.reader);
    application_close(&app);

close_input:
    if (fd != STDIN_FILENO)
        close(fd);
    return status;
}

enum status cli_append(struct cli *cli, struct diag *diag)
{
    return run_verb(cli, NDJSON_APPEND, diag);
}

enum status cli_emit(struct cli *cli, struct diag *diag)
{
    return run_verb(cli, NDJSON_EMIT, diag);
}
