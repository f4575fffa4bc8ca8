#include "cli/cli.h"
#include "cli/output.h"

#include "base/json.h"
#include "run/command_run.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define READ_STEP 65536

static void print_event(struct buffer *out, const struct aggregate_event *event)
{
    buffer_append_string(out, "  ");
    output_safe(out, event->type);
    buffer_append_string(out, "  ");
    output_safe(out, event->aggregate_type);
    buffer_append_char(out, ' ');
    output_safe(out, event->aggregate_id);
    buffer_printf(out, "  sequence %" PRId64 ", position %" PRId64 "\n",
                  event->sequence, event->position);
}

static void print_accepted(const struct aggregate_outcome *outcome,
                           struct buffer *out)
{
    buffer_append_string(out,
                         outcome->repeated ? "accepted before" : "accepted");
    if (outcome->nevents == 0)
        buffer_append_string(out, ", no event\n");
    else
        buffer_printf(out, ", %zu event%s\n", outcome->nevents,
                      outcome->nevents == 1 ? "" : "s");
    for (size_t i = 0; i < outcome->nevents; i++)
        print_event(out, &outcome->events[i]);
}

/* For a person; `details` are JSON as it is. */
static enum status tell_rejected(const struct aggregate_outcome *outcome,
                                 struct diag *diag)
{
    bool details = outcome->details.data != NULL;

    return diag_set(diag, STATUS_REFUSED, "rejected%s: %.*s%s%.*s",
                    outcome->repeated ? " before" : "",
                    TEXT_ARGS(outcome->reason), details ? " " : "",
                    TEXT_ARGS(outcome->details));
}

static enum status print(struct cli *cli,
                         const struct aggregate_outcome *outcome,
                         struct diag *diag)
{
    struct buffer out = BUFFER_EMPTY;

    if (cli->json) {
        command_json(outcome, &out);
        buffer_append_char(&out, '\n');
    } else if (!outcome->rejected && !cli->quiet) {
        print_accepted(outcome, &out);
    }
    fwrite(buffer_text(&out).data, 1, out.len, cli->out);
    buffer_free(&out);
    if (!outcome->rejected)
        return STATUS_OK;
    if (cli->json) /* it is told already */
        cli->exit_code = cli_exit_code(STATUS_REFUSED);
    return tell_rejected(outcome, diag);
}

/* --- what is asked for ---------------------------------------------------- */

/* A mistake in the command line is told apart from one in what is read. */
static enum status as_usage(enum status status, struct diag *diag)
{
    if (status == STATUS_INVALID)
        diag->status = status = STATUS_USAGE;
    return status;
}

/* The arguments as standard input has them, which may be as long as an event
 * of them. */
static enum status read_arguments(int64_t limit, struct buffer *json,
                                  struct diag *diag)
{
    char bytes[READ_STEP];
    ssize_t got;

    while ((got = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_set(diag, STATUS_FAILED,
                            "cannot read the command's arguments from standard "
                            "input: %s",
                            strerror(errno));
        if ((int64_t)json->len + got > limit)
            return diag_set(diag, STATUS_INVALID,
                            "the command's arguments on standard input have "
                            "more than %" PRId64
                            " bytes, which limits.payload allows",
                            limit);
        buffer_append(json, bytes, (size_t)got);
    }
    return STATUS_OK;
}

static enum status take_arguments(struct cli *cli, struct buffer *read_json,
                                  struct aggregate_command *command,
                                  struct diag *diag)
{
    const struct settings *settings;
    enum status status;

    if (cli->nargs <= 3)
        return STATUS_OK;
    if (strcmp(cli->args[3], "-") != 0) {
        command->args = text_of(cli->args[3]);
        status = json_check(command->args, NULL, diag);
        if (status != STATUS_OK)
            diag_wrap(diag, "the command's arguments");
        return as_usage(status, diag);
    }
    status = cli_settings(cli, &settings, diag);
    if (status == STATUS_OK)
        status = read_arguments(settings->limit_payload, read_json, diag);
    command->args = buffer_text(read_json);
    return status;
}

static enum status take_metadata(const struct cli *cli,
                                 struct aggregate_command *command,
                                 struct diag *diag)
{
    const char *metadata = cli_value(cli, "metadata");
    enum status status;

    if (metadata == NULL)
        return STATUS_OK;
    command->metadata = text_of(metadata);
    status = json_check(command->metadata, NULL, diag);
    if (status == STATUS_OK &&
        json_first(command->metadata).kind != JSON_OBJECT)
        status = diag_set(diag, STATUS_USAGE, "a JSON object is wanted");
    if (status != STATUS_OK)
        diag_wrap(diag, "--metadata");
    return as_usage(status, diag);
}

static enum status take_id(const struct cli *cli,
                           struct aggregate_command *command, struct diag *diag)
{
    const char *id = cli_value(cli, "id");

    command->has_command_id = id != NULL;
    if (id != NULL && !uuid_parse(text_of(id), &command->command_id))
        return diag_set(diag, STATUS_USAGE, "--id %.100s is not a UUID", id);
    return STATUS_OK;
}

static enum status take_command(struct cli *cli, struct buffer *read_json,
                                struct aggregate_command *command,
                                struct diag *diag)
{
    enum status status = take_id(cli, command, diag);

    if (status == STATUS_OK)
        status = as_usage(aggregate_check_id(command->id, diag), diag);
    if (status == STATUS_OK)
        status = take_metadata(cli, command, diag);
    if (status == STATUS_OK)
        status = take_arguments(cli, read_json, command, diag);
    return status;
}

/* --- the verb ------------------------------------------------------------- */

static enum status dispatch(struct cli *cli,
                            const struct aggregate_command *command,
                            struct diag *diag)
{
    struct aggregate_outcome outcome;
    struct aggregates *aggregates;
    struct application app;
    enum status status = cli_open(
        cli, APPLICATION_DATABASE | APPLICATION_SCRIPTS, &app, diag);

    if (status != STATUS_OK)
        return status;
    status = command_open(&app, &aggregates, diag);
    if (status == STATUS_OK) {
        status = command_run(&app, aggregates, command, &outcome, diag);
        if (status == STATUS_OK)
            status = print(cli, &outcome, diag);
        aggregates_close(aggregates);
    }
    application_close(&app);
    return status;
}

enum status cli_command(struct cli *cli, struct diag *diag)
{
    struct aggregate_command command = {
        .aggregate = text_of(cli->args[0]),
        .id = text_of(cli->args[1]),
        .name = text_of(cli->args[2]),
    };
    struct buffer read_json = BUFFER_EMPTY;
    enum status status = take_command(cli, &read_json, &command, diag);

    if (status == STATUS_OK)
        status = dispatch(cli, &command, diag);
    buffer_free(&read_json);
    return status;
}
