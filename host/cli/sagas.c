#include "cli/cli.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_member.h"
#include "cli/operator.h"
#include "cli/output.h"
#include "cli/saga_steps.h"
#include "consumer/operate_deadlines.h"
#include "model/saga_delete.h"
#include "model/saga_list.h"
#include "model/saga_step_operate.h"

#include <inttypes.h>

#define LIMIT_DEFAULT   100
#define DEADLINES_SHOWN 1000

/* --- list ------------------------------------------------------------------
 */

/* The members of one saga, without the braces. */
static void write_saga(struct buffer *out, bool *first, struct text type,
                       const struct saga_instance *saga)
{
    char version[24];

    json_member_text(out, first, "type", type);
    json_member_text(out, first, "id", saga->saga_id);
    json_member_string(out, first, "state",
                       saga->completed ? "completed" : "active");
    json_member_time(out, first, "begun_at", saga_begun_at(&saga->id));
    if (saga->completed)
        json_member_time(out, first, "completed_at", saga->completed_at);
    json_member_id(out, first, "instance", &saga->id);
    /* it counts from a random number, which a double would not keep */
    snprintf(version, sizeof(version), "%" PRId64, saga->version);
    json_member_string(out, first, "version", version);
}

static void print_list_json(struct cli *cli, const struct saga_list *list)
{
    struct buffer out = BUFFER_EMPTY;

    buffer_append_string(&out, "{\"sagas\":[");
    for (size_t i = 0; i < list->count; i++) {
        bool first = true;

        buffer_append_string(&out, i > 0 ? ",{" : "{");
        write_saga(&out, &first, list->items[i].type, &list->items[i].instance);
        buffer_append_char(&out, '}');
    }
    buffer_printf(&out, "],\"total\":%" PRId64 "}\n", list->total);
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

static void print_list(struct cli *cli, const struct saga_list *list)
{
    static const char *const headings[] = {"saga",     "id",           "state",
                                           "begun at", "completed at", NULL};
    struct buffer line = BUFFER_EMPTY;
    struct output_table table;
    char at[CLOCK_TEXT_SIZE];

    if (cli->json) {
        print_list_json(cli, list);
        return;
    }
    if (list->count == 0) {
        if (!cli->quiet)
            fputs("no saga\n", cli->err);
        return;
    }
    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < list->count; i++) {
        const struct saga_instance *saga = &list->items[i].instance;

        output_cell(&table, list->items[i].type);
        output_cell(&table, saga->saga_id);
        output_cell_string(&table, saga->completed ? "completed" : "active");
        clock_format(saga_begun_at(&saga->id), at);
        output_cell_string(&table, at);
        if (saga->completed)
            clock_format(saga->completed_at, at);
        output_cell_string(&table, saga->completed ? at : "");
    }
    output_table_end(&table, cli->out);
    if (list->total > (int64_t)list->count && !cli->quiet) {
        buffer_append_string(&line, "the first ");
        output_grouped(&line, (int64_t)list->count);
        buffer_append_string(&line, " of ");
        output_grouped(&line, list->total);
        fprintf(cli->err, "%s; --limit shows more\n", line.data);
    }
    buffer_free(&line);
}

static enum status list_sagas(struct cli *cli, const struct operate_env *env,
                              struct diag *diag)
{
    const char *state = cli_value(cli, "state");
    struct saga_filter filter = {
        .type = cli_value(cli, "type"),
        .active = state != NULL && strcmp(state, "active") == 0,
        .completed = state != NULL && strcmp(state, "completed") == 0,
    };
    struct arena arena = ARENA_EMPTY;
    struct saga_list list;
    int64_t limit;
    enum status status = cli_integer(cli, "limit", LIMIT_DEFAULT, 1, INT32_MAX,
                                     &limit, diag);

    if (status != STATUS_OK)
        return status;
    if (cli->nargs > 1) {
        if (filter.type != NULL)
            return diag_set(diag, STATUS_USAGE,
                            "'%.100s' and --type do not go together",
                            cli->args[1]);
        filter.type = cli->args[1];
    }
    if (cli->nargs > 2)
        filter.saga_id = cli->args[2];
    status = saga_list_read(env->db, env->catalog, &filter, (size_t)limit,
                            &arena, &list, diag);
    if (status == STATUS_OK)
        print_list(cli, &list);
    arena_free(&arena);
    return status;
}

/* --- show ------------------------------------------------------------------
 */

struct shown {
    const char *type;
    struct saga_instance saga;
    struct deadline_list deadlines;
    struct saga_steps steps; /* none: it is not orchestrated */
};

static void print_shown(struct cli *cli, const struct shown *shown)
{
    const struct saga_instance *saga = &shown->saga;
    char due[CLOCK_TEXT_SIZE];
    struct buffer line = BUFFER_EMPTY;

    output_field(cli->out, OUTPUT_FIELD_WIDTH, "saga", text_of(shown->type));
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "id", saga->saga_id);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "state",
                 text_of(saga->completed ? "completed" : "active"));
    output_field_time(cli->out, OUTPUT_FIELD_WIDTH, "begun at",
                      saga_begun_at(&saga->id));
    if (saga->completed)
        output_field_time(cli->out, OUTPUT_FIELD_WIDTH, "completed at",
                          saga->completed_at);
    for (size_t i = 0; i < shown->deadlines.count; i++) {
        const struct deadline_listed *item = &shown->deadlines.items[i];

        clock_format(item->deadline.due_at, due);
        buffer_clear(&line);
        buffer_printf(&line, "%.*s, due at %s, %s",
                      TEXT_ARGS(item->deadline.name), due,
                      deadline_status_word(item->status));
        output_field(cli->out, OUTPUT_FIELD_WIDTH, "deadline",
                     buffer_text(&line));
    }
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "data", saga->state);
    output_field_id(cli->out, OUTPUT_FIELD_WIDTH, "instance", &saga->id);
    buffer_clear(&line);
    buffer_printf(&line, "%" PRId64, saga->version);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "version", buffer_text(&line));
    buffer_free(&line);
    if (shown->steps.nrows > 0)
        fputc('\n', cli->out);
    cli_saga_steps_print(cli, &shown->steps);
}

static void print_shown_json(struct cli *cli, const struct shown *shown)
{
    struct buffer out = BUFFER_EMPTY, deadlines = BUFFER_EMPTY;
    bool first = true;

    buffer_append_char(&out, '{');
    write_saga(&out, &first, text_of(shown->type), &shown->saga);
    json_member_raw(&out, &first, "data", shown->saga.state);
    json_write_key(&out, &first, "steps");
    saga_step_operate_json(&out, &shown->steps);
    /* {"deadlines": [...], "total": n} */
    operate_deadlines_json(&deadlines, &shown->deadlines, true);
    buffer_append_char(&out, ',');
    buffer_append(&out, deadlines.data + 1, deadlines.len - 1);
    buffer_append_char(&out, '\n');
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
    buffer_free(&deadlines);
}

static enum status show_saga(struct cli *cli,
                             const struct operator_session *session,
                             struct diag *diag)
{
    const struct operate_env *env = &session->env;
    struct shown shown = {.type = cli->args[1],
                          .saga = {.saga_id = text_of(cli->args[2])}};
    const struct deadline_filter filter = {.type = cli->args[1],
                                           .saga_id = cli->args[2]};
    const struct saga_step_subject subject = {text_of(cli->args[1]),
                                              text_of(cli->args[2])};
    struct arena arena = ARENA_EMPTY;
    struct saga_instances instances;
    enum status status;

    saga_instances_init(&instances, shown.type, &session->app.settings->names,
                        env->catalog);
    status = saga_instances_load(&instances, env->db, &shown.saga, 1, &arena,
                                 diag);
    if (status == STATUS_OK && !shown.saga.stored)
        status = diag_set(diag, STATUS_FAILED,
                          "there is no saga '%.200s' of type '%.200s'; "
                          "moontide sagas lists them",
                          cli->args[2], cli->args[1]);
    if (status == STATUS_OK)
        status = operate_deadlines_list(env, &filter, DEADLINES_SHOWN, &arena,
                                        &shown.deadlines, diag);
    if (status == STATUS_OK)
        status = saga_step_operate_read(env, &subject, &arena, &shown.steps,
                                        diag);
    if (status == STATUS_OK && cli->json)
        print_shown_json(cli, &shown);
    else if (status == STATUS_OK)
        print_shown(cli, &shown);
    arena_free(&arena);
    return status;
}

/* --- delete ----------------------------------------------------------------
 */

static void print_deleted_json(struct cli *cli, const struct saga_deletion *d)
{
    struct buffer out = BUFFER_EMPTY;
    bool first = true;

    buffer_append_char(&out, '{');
    json_member_string(&out, &first, "type", cli->args[1]);
    json_member_string(&out, &first, "id", cli->args[2]);
    json_member_string(&out, &first, "state",
                       d->completed ? "completed" : "active");
    json_member_id(&out, &first, "instance", &d->instance);
    json_member_int64(&out, &first, "deadlines", d->deadlines);
    json_member_int64(&out, &first, "steps", d->steps);
    json_member_int64_if(&out, &first, "outbox", d->outbox >= 0, d->outbox);
    buffer_append_string(&out, "}\n");
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

static void print_deleted(struct cli *cli, const struct saga_deletion *d)
{
    struct buffer line = BUFFER_EMPTY;

    if (cli->json) {
        print_deleted_json(cli, d);
        return;
    }
    if (cli->quiet)
        return;
    buffer_append_string(&line, "saga '");
    output_safe(&line, text_of(cli->args[2]));
    buffer_append_string(&line, "' of type '");
    output_safe(&line, text_of(cli->args[1]));
    buffer_append_string(&line, "' deleted, with ");
    operator_count(&line, d->deadlines, "deadline");
    buffer_append_string(&line, " and ");
    operator_count(&line, d->steps, "row");
    buffer_append_string(&line, " of steps\n");
    if (d->outbox < 0)
        buffer_append_string(&line, "what it has staged in the outbox stays\n");
    if (d->outbox > 0) {
        operator_count(&line, d->outbox, "message");
        buffer_append_string(&line, " of it in the outbox, not sent yet, ");
        buffer_append_string(&line, d->outbox > 1 ? "stay" : "stays");
        buffer_append_string(&line, "; moontide outbox lists what is staged\n");
    }
    fwrite(line.data, 1, line.len, cli->out);
    buffer_free(&line);
}

static enum status delete_saga(struct cli *cli,
                               const struct operator_session *session,
                               struct diag *diag)
{
    const struct saga_step_subject subject = {text_of(cli->args[1]),
                                              text_of(cli->args[2])};
    struct arena arena = ARENA_EMPTY;
    struct saga_deletion deletion;
    enum status status = saga_delete(
        &session->env, &session->app.settings->names, &subject,
        cli_given(cli, "force"), &arena, &deletion, diag);

    if (status == STATUS_OK)
        print_deleted(cli, &deletion);
    arena_free(&arena);
    return status;
}

/* --- the verb --------------------------------------------------------------
 */

static bool is(const struct cli *cli, const char *word)
{
    return cli->nargs > 0 && strcmp(cli->args[0], word) == 0;
}

static enum status check_words(const struct cli *cli, bool orders,
                               struct diag *diag)
{
    if (orders && !cli_given(cli, "force"))
        return cli_saga_steps_check(cli, diag);
    if ((is(cli, "show") || is(cli, "delete")) && cli->nargs < 3)
        return diag_set(diag, STATUS_USAGE,
                        "sagas %s needs to know which: TYPE ID", cli->args[0]);
    if (cli_given(cli, "force") && !is(cli, "delete"))
        return diag_set(diag, STATUS_USAGE, "--force is for sagas delete");
    if (cli->nargs > 3)
        return diag_set(diag, STATUS_USAGE, "sagas %s takes TYPE and ID",
                        cli->args[0]);
    return STATUS_OK;
}

enum status cli_sagas(struct cli *cli, struct diag *diag)
{
    bool orders = is(cli, "retry") || is(cli, "confirm");
    struct operator_session session;
    enum status status = check_words(cli, orders, diag);

    if (status == STATUS_OK)
        status = operator_open(cli,
                               orders || is(cli, "delete")
                                   ? APPLICATION_ROWS
                                   : APPLICATION_READ_ONLY,
                               &session, diag);
    if (status != STATUS_OK)
        return status;
    if (orders)
        status = cli_saga_steps_order(cli, &session.env, diag);
    else if (is(cli, "delete"))
        status = delete_saga(cli, &session, diag);
    else
        status = is(cli, "show") ? show_saga(cli, &session, diag)
                                 : list_sagas(cli, &session.env, diag);
    operator_close(&session);
    return status;
}
