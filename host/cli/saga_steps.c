#include "cli/saga_steps.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/output.h"
#include "model/saga_step_operate.h"

#include <string.h>

static void cell_time(struct output_table *table, int64_t at)
{
    char text[CLOCK_TEXT_SIZE] = "";

    if (at != 0)
        clock_format(at, text);
    output_cell_string(table, text);
}

static void cell_id(struct output_table *table, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id, text);
    output_cell_string(table, text);
}

/* What was sent goes by these in the outbox and in what answers it. A table of
 * their own, because that of the steps is wide as it is. */
static void print_ids(const struct cli *cli, const struct saga_steps *steps)
{
    static const char *const headings[] = {"step", ">round", "command id",
                                           "compensation id", NULL};
    struct output_table table;

    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < steps->nrows; i++) {
        const struct saga_step_row *row = &steps->rows[i];

        output_cell(&table, row->name);
        output_cell_int64(&table, row->round);
        cell_id(&table, &row->command_id);
        if (row->has_compensation_id)
            cell_id(&table, &row->compensation_id);
        else
            output_cell_string(&table, "");
    }
    output_table_end(&table, cli->out);
}

void cli_saga_steps_print(struct cli *cli, const struct saga_steps *steps)
{
    static const char *const headings[] = {
        "step",     ">round",      "state",        ">sends", "sent at",
        "answered", "compensated", "awaited till", "reason", NULL};
    struct output_table table;

    if (steps->nrows == 0)
        return;
    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < steps->nrows; i++) {
        const struct saga_step_row *row = &steps->rows[i];

        output_cell(&table, row->name);
        output_cell_int64(&table, row->round);
        output_cell_string(&table, saga_step_state_word(row->state));
        output_cell_int64(&table, row->sends + row->compensation_sends);
        cell_time(&table, row->sent_at);
        cell_time(&table, row->answered_at);
        cell_time(&table, row->compensated_at);
        cell_time(&table, row->deadline_at);
        output_cell(&table,
                    row->reason.data != NULL ? row->reason : TEXT_LITERAL(""));
    }
    output_table_end(&table, cli->out);
    fputc('\n', cli->out);
    print_ids(cli, steps);
}

static void print_ordered(struct cli *cli, bool confirm,
                          const struct saga_step_row *row)
{
    struct buffer safe = BUFFER_EMPTY;
    bool back = row->has_compensation_id;

    if (cli->json) {
        buffer_append_string(&safe, "{\"step\":");
        json_write_string(&safe, row->name);
        fprintf(cli->out, "%s,\"round\":%d,\"compensation\":%s}\n", safe.data,
                row->round, back ? "true" : "false");
    } else if (!cli->quiet) {
        output_safe(&safe, row->name);
        fprintf(cli->out,
                "the %s of step '%s' %s by the host that holds the saga, or "
                "the next that starts\n",
                back ? "compensation" : "command", safe.data,
                confirm ? "is taken as done" : "is sent again");
    }
    buffer_free(&safe);
}

enum status cli_saga_steps_check(const struct cli *cli, struct diag *diag)
{
    bool confirm = strcmp(cli->args[0], "confirm") == 0;

    if (cli->nargs == (confirm ? 4 : 3))
        return STATUS_OK;
    return diag_set(diag, STATUS_USAGE, "sagas %s takes %s", cli->args[0],
                    confirm ? "TYPE, ID and STEP" : "TYPE and ID");
}

enum status cli_saga_steps_order(struct cli *cli, const struct operate_env *env,
                                 struct diag *diag)
{
    bool confirm = strcmp(cli->args[0], "confirm") == 0;
    struct arena arena = ARENA_EMPTY;
    struct saga_step_subject subject;
    struct saga_step_row row;
    enum status status;

    subject = (struct saga_step_subject){text_of(cli->args[1]),
                                         text_of(cli->args[2])};
    status = saga_step_operate(
        env, &subject, confirm ? SAGA_STEP_CONFIRM : SAGA_STEP_RETRY,
        confirm ? text_of(cli->args[3]) : TEXT_NONE, &arena, &row, diag);
    if (status == STATUS_OK)
        print_ordered(cli, confirm, &row);
    arena_free(&arena);
    return status;
}
