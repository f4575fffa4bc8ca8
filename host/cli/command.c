#include "cli/cli.h"
#include "cli/output.h"

#include "run/command_run.h"

#include <inttypes.h>

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

static enum status take_id(const struct cli *cli,
                           struct aggregate_command *command, struct diag *diag)
{
    const char *id = cli_value(cli, "id");

    command->has_command_id = id != NULL;
    if (id != NULL && !uuid_parse(text_of(id), &command->command_id))
        return diag_set(diag, STATUS_USAGE, "--id %.100s is not a UUID", id);
    return STATUS_OK;
}

enum status cli_command(struct cli *cli, struct diag *diag)
{
    struct aggregate_command command = {
        .aggregate = text_of(cli->args[0]),
        .id = text_of(cli->args[1]),
        .name = text_of(cli->args[2]),
        .args = text_of(cli->nargs > 3 ? cli->args[3] : NULL),
        .metadata = text_of(cli_value(cli, "metadata")),
    };
    struct aggregate_outcome outcome;
    struct aggregates *aggregates;
    struct application app;
    enum status status;

    status = take_id(cli, &command, diag);
    if (status != STATUS_OK)
        return status;
    status = cli_open(cli, APPLICATION_DATABASE | APPLICATION_SCRIPTS, &app,
                      diag);
    if (status != STATUS_OK)
        return status;
    status = command_open(&app, &aggregates, diag);
    if (status == STATUS_OK) {
        status = command_run(&app, aggregates, &command, &outcome, diag);
        if (status == STATUS_OK)
            status = print(cli, &outcome, diag);
        aggregates_close(aggregates);
    }
    application_close(&app);
    return status;
}
