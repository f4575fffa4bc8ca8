#include "base/clock.h"
#include "cli/operator.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "consumer/operate_deadlines.h"

#include <assert.h>
#include <inttypes.h>

#define LIMIT_DEFAULT 100

/* What is done to an orchestrated saga instead of deleting its deadline. */
#define INSTEAD                                                                \
    "without it its saga would wait for ever; `moontide sagas retry TYPE ID` " \
    "sends what it awaits again, `moontide sagas confirm TYPE ID STEP` takes " \
    "it as done"

struct request {
    const char *word; /* list, show, fire, retry, delete */
    struct deadline_filter filter;
    int64_t limit;
    char id[UUID_TEXT_LEN + 1];
};

static bool is(const struct request *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

static bool looks(const struct request *r)
{
    return is(r, "list") || is(r, "show");
}

/* --- what is asked for ---------------------------------------------------- */

/* SAGA [ID [NAME]], or one row. An option that says the same differently would
 * be a filter that nobody meant. */
static enum status take_words(const struct cli *cli, struct request *r,
                              struct diag *diag)
{
    static const char *const options[] = {"type", "saga", "name"};
    const char **fields[] = {&r->filter.type, &r->filter.saga_id,
                             &r->filter.name};
    struct uuid id;

    assert(cli->nargs <= 4);
    if (cli->nargs == 2 && uuid_parse(text_of(cli->args[1]), &id)) {
        uuid_format(&id, r->id);
        r->filter.id = r->id;
        return STATUS_OK;
    }
    for (int i = 1; i < cli->nargs; i++) {
        if (*fields[i - 1] != NULL)
            return diag_set(diag, STATUS_USAGE,
                            "'%.100s' and --%s do not go together",
                            cli->args[i], options[i - 1]);
        *fields[i - 1] = cli->args[i];
    }
    return STATUS_OK;
}

/* With --all there is no other filter, and one of them must be there. */
static enum status check_request(const struct cli *cli, const struct request *r,
                                 struct diag *diag)
{
    bool narrows = deadline_filter_narrows(&r->filter);
    bool all = cli_given(cli, "all");

    if (all && r->filter.id != NULL)
        return diag_set(diag, STATUS_USAGE,
                        "--all and one deadline do not go together");
    if (is(r, "delete") && r->filter.name != NULL &&
        strncmp(r->filter.name, DEADLINE_OF_HOST, strlen(DEADLINE_OF_HOST)) ==
            0)
        return diag_set(diag, STATUS_USAGE,
                        "'%.100s' is a deadline of the host and is not "
                        "deleted: " INSTEAD,
                        r->filter.name);
    if (is(r, "list") || all || narrows)
        return STATUS_OK;
    return diag_set(diag, STATUS_USAGE,
                    "deadlines %s needs to know which deadlines: SAGA ID NAME, "
                    "a filter such as --status, or --all",
                    r->word);
}

static enum status take_request(const struct cli *cli, struct request *r,
                                struct diag *diag)
{
    enum status status;

    *r = (struct request){
        .word = cli->nargs > 0 ? cli->args[0] : "list",
        .filter =
            {
                .type = cli_value(cli, "type"),
                .saga_id = cli_value(cli, "saga"),
                .name = cli_value(cli, "name"),
                .status = cli_value(cli, "status"),
            },
    };
    status = cli_integer(cli, "limit", LIMIT_DEFAULT, 1, INT32_MAX, &r->limit,
                         diag);
    if (status == STATUS_OK)
        status = take_words(cli, r, diag);
    return status;
}

/* Judged by the clock that they fire by. */
static enum status take_due_before(const struct cli *cli,
                                   const struct operate_env *env,
                                   struct request *r, struct diag *diag)
{
    const char *given = cli_value(cli, "due-before");
    int64_t now, ahead = 0;
    enum status status;

    if (given == NULL)
        return STATUS_OK;
    if (clock_parse(text_of(given), &r->filter.due_before, NULL) == STATUS_OK)
        return STATUS_OK;
    if (strcmp(given, "now") != 0 &&
        clock_parse_duration(text_of(given), &ahead, NULL) != STATUS_OK)
        return diag_set(diag, STATUS_USAGE,
                        "--due-before takes a time like "
                        "2027-01-31T12:00:00Z, \"now\", or a time from now on "
                        "like \"2h\", not '%.100s'",
                        given);
    status = deadline_clock(env->db, env->clock, &now, diag);
    r->filter.due_before = now + ahead;
    return status;
}

/* --- looking -------------------------------------------------------------- */

static void print_json(struct cli *cli, const struct deadline_list *list,
                       bool whole)
{
    struct buffer out = BUFFER_EMPTY;

    operate_deadlines_json(&out, list, whole);
    buffer_append_char(&out, '\n');
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

static void print_rest(struct cli *cli, const struct deadline_list *list)
{
    struct buffer line = BUFFER_EMPTY;

    if (list->total > (int64_t)list->count && !cli->quiet) {
        buffer_append_string(&line, "the first ");
        output_grouped(&line, (int64_t)list->count);
        buffer_append_string(&line, " of ");
        output_grouped(&line, list->total);
        fprintf(cli->err, "%s; --limit shows more\n", line.data);
    }
    buffer_free(&line);
}

/* "in 5m", "3s ago" */
static void append_when(struct buffer *out, int64_t at, int64_t now)
{
    if (at > now) {
        buffer_append_string(out, "in ");
        output_duration(out, at - now);
    } else {
        output_duration(out, now - at);
        buffer_append_string(out, " ago");
    }
}

static void add_row(struct output_table *table,
                    const struct deadline_listed *item, int64_t now)
{
    const struct deadline *d = &item->deadline;
    struct buffer due = BUFFER_EMPTY;
    char at[CLOCK_TEXT_SIZE];

    clock_format(d->due_at, at);
    append_when(&due, d->due_at, now);
    output_cell(table, item->type);
    output_cell(table, d->saga_id);
    output_cell(table, d->name);
    output_cell_string(table, at);
    output_cell(table, buffer_text(&due));
    output_cell_string(table, deadline_status_word(item->status));
    output_cell_int64(table, d->attempts);
    output_cell(table, d->reason.data != NULL ? d->reason : TEXT_LITERAL(""));
    buffer_free(&due);
}

static void print_list(struct cli *cli, const struct deadline_list *list,
                       int64_t now)
{
    static const char *const headings[] = {"saga",      "id",     "deadline",
                                           "due at",    ">due",   "status",
                                           ">attempts", "reason", NULL};
    struct output_table table;

    if (cli->json) {
        print_json(cli, list, false);
        return;
    }
    if (list->count == 0) {
        if (!cli->quiet)
            fputs("no deadline\n", cli->err);
        return;
    }
    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < list->count; i++)
        add_row(&table, &list->items[i], now);
    output_table_end(&table, cli->out);
    print_rest(cli, list);
}

static void print_time(struct cli *cli, const char *name, int64_t at,
                       int64_t now)
{
    struct buffer line = BUFFER_EMPTY;
    char text[CLOCK_TEXT_SIZE];

    clock_format(at, text);
    buffer_printf(&line, "%s, ", text);
    append_when(&line, at, now);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, name, buffer_text(&line));
    buffer_free(&line);
}

static void print_one(struct cli *cli, const struct deadline_listed *item,
                      int64_t now)
{
    const struct deadline *d = &item->deadline;
    struct buffer line = BUFFER_EMPTY;

    output_field(cli->out, OUTPUT_FIELD_WIDTH, "saga", item->type);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "id", d->saga_id);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "deadline", d->name);
    print_time(cli, "due at", d->due_at, now);
    buffer_printf(&line, "%s, ", deadline_status_word(item->status));
    operator_count(&line, d->attempts, "attempt");
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "status", buffer_text(&line));
    if (d->next_at != 0 && d->next_at != d->due_at)
        print_time(cli, "next retry", d->next_at, now);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "error", d->reason);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "payload", d->payload);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "metadata", d->message.metadata);
    buffer_clear(&line);
    buffer_printf(&line, "%d", d->partition);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "partition", buffer_text(&line));
    output_field_id(cli->out, OUTPUT_FIELD_WIDTH, "instance", &d->instance);
    output_field_id(cli->out, OUTPUT_FIELD_WIDTH, "row", &d->id);
    buffer_free(&line);
}

static enum status look(struct cli *cli, const struct operate_env *env,
                        const struct request *r, struct diag *diag)
{
    struct arena arena = ARENA_EMPTY;
    struct deadline_list list = {.count = 0};
    int64_t now;
    enum status status = deadline_clock(env->db, env->clock, &now, diag);

    if (status == STATUS_OK)
        status = operate_deadlines_list(env, &r->filter, (size_t)r->limit,
                                        &arena, &list, diag);
    if (status == STATUS_OK && is(r, "list")) {
        print_list(cli, &list, now);
    } else if (status == STATUS_OK && list.count == 0) {
        status = diag_set(diag, STATUS_FAILED,
                          "no deadline is meant by that; moontide deadlines "
                          "lists them");
    } else if (status == STATUS_OK && cli->json) {
        print_json(cli, &list, true);
    } else if (status == STATUS_OK) {
        for (size_t i = 0; i < list.count; i++) {
            if (i > 0)
                fputc('\n', cli->out);
            print_one(cli, &list.items[i], now);
        }
        print_rest(cli, &list);
    }
    arena_free(&arena);
    return status;
}

/* --- changing ------------------------------------------------------------- */

static void print_changed(struct cli *cli, const struct request *r,
                          const struct deadline_changed *changed)
{
    struct buffer line = BUFFER_EMPTY;
    const char *now = changed->changed == 1 ? " is due now" : " are due now";

    if (cli->json) {
        fprintf(cli->out,
                "{\"changed\":%" PRId64 ",\"dead_letters\":%" PRId64
                ",\"of_host\":%" PRId64 "}\n",
                changed->changed, changed->dead, changed->of_host);
        return;
    }
    if (cli->quiet)
        return;
    if (changed->changed == 0 && changed->dead == 0 && changed->of_host == 0) {
        fputs(is(r, "fire")
                  ? "no deadline matches that is not due already: nothing "
                    "changed\n"
                  : "no deadline matches: nothing changed\n",
              cli->out);
        return;
    }
    if (changed->changed > 0) {
        operator_count(&line, changed->changed, "deadline");
        if (is(r, "delete"))
            buffer_append_string(&line, " deleted");
        else
            buffer_printf(&line,
                          "%s; whoever holds the saga fires, or the next host "
                          "that starts",
                          is(r, "retry") ? " with a fresh budget" : now);
        fprintf(cli->out, "%s\n", line.data);
    }
    if (changed->dead > 0) {
        buffer_clear(&line);
        operator_count(&line, changed->dead, "dead letter");
        fprintf(cli->out,
                "%s left alone; moontide deadlines retry gives a fresh "
                "budget\n",
                line.data);
    }
    if (changed->of_host > 0) {
        buffer_clear(&line);
        operator_count(&line, changed->of_host, "deadline");
        fprintf(cli->out, "%s of the host left alone: " INSTEAD "\n",
                line.data);
    }
    buffer_free(&line);
}

static enum status change(struct cli *cli, const struct operate_env *env,
                          const struct request *r, struct diag *diag)
{
    enum deadline_order order = is(r, "fire")    ? DEADLINE_FIRE
                                : is(r, "retry") ? DEADLINE_RETRY
                                                 : DEADLINE_DELETE;
    struct deadline_changed changed;
    enum status status = operate_deadlines_change(env, &r->filter, order,
                                                  &changed, diag);

    if (status == STATUS_OK && r->filter.id != NULL && changed.of_host > 0)
        return diag_set(
            diag, STATUS_FAILED,
            "that is a deadline of the host and is not deleted: " INSTEAD);
    if (status == STATUS_OK)
        print_changed(cli, r, &changed);
    return status;
}

enum status cli_deadlines(struct cli *cli, struct diag *diag)
{
    struct operator_session session;
    struct request r;
    enum status status = take_request(cli, &r, diag);

    if (status == STATUS_OK && cli_given(cli, "due-before"))
        r.filter.due_before = 1; /* something; told once there is a database */
    if (status == STATUS_OK)
        status = check_request(cli, &r, diag);
    if (status == STATUS_OK)
        status = operator_open(
            cli, looks(&r) ? APPLICATION_READ_ONLY : APPLICATION_ROWS, &session,
            diag);
    if (status != STATUS_OK)
        return status;
    if (!looks(&r))
        session.env.stop = stop_on_signals();
    status = take_due_before(cli, &session.env, &r, diag);
    if (status == STATUS_OK)
        status = looks(&r) ? look(cli, &session.env, &r, diag)
                           : change(cli, &session.env, &r, diag);
    operator_close(&session);
    return status;
}
