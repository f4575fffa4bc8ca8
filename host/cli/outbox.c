#include "cli/operator.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "outbox/outbox_retry.h"

#include "base/json_member.h"
#include "run/application.h"

#include <inttypes.h>

#define LIMIT_DEFAULT 100
#define FIELD_WIDTH   16

/* --- JSON ---------------------------------------------------------------- */

static void write_row(struct buffer *out, const struct outbox_row *row)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "id", row->id);
    json_member_string(out, &first, "publisher", row->route);
    json_member_string(out, &first, "event_id", row->event_id);
    json_member_string(out, &first, "type", row->type);
    json_member_string(out, &first, "status", row->status);
    json_member_string(out, &first, "ordering_key", row->ordering_key);
    json_member_string(out, &first, "tenant_id", row->tenant_id);
    json_member_string(out, &first, "execution_id", row->execution_id);
    json_member_string(out, &first, "correlation_id", row->correlation_id);
    json_member_string(out, &first, "causation_id", row->causation_id);
    json_member_raw(out, &first, "metadata", text_of(row->metadata));
    if (row->payload != NULL)
        json_member_raw(out, &first, "payload", text_of(row->payload));
    json_member_int64(out, &first, "attempts", row->attempts);
    json_member_string(out, &first, "last_error", row->last_error);
    json_member_time_or_null(out, &first, "occurred_at", row->occurred_at);
    json_member_time_or_null(out, &first, "created_at", row->created_at);
    json_member_time_or_null(out, &first, "available_at", row->available_at);
    json_member_time_or_null(out, &first, "published_at", row->published_at);
    buffer_append_char(out, '}');
}

static void print_json(struct cli *cli, const struct outbox_rows *rows)
{
    struct buffer out = BUFFER_EMPTY;

    buffer_append_string(&out, "{\"messages\":[");
    for (size_t i = 0; i < rows->count; i++) {
        buffer_append_string(&out, i > 0 ? "," : "");
        write_row(&out, &rows->items[i]);
    }
    buffer_printf(&out, "],\"more\":%s}\n", rows->more ? "true" : "false");
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

/* --- text ---------------------------------------------------------------- */

static void print_table(struct cli *cli, const struct outbox_rows *rows,
                        int64_t now)
{
    static const char *const headings[] = {
        "publisher", "type", "key", "status", ">age", "event id", NULL};
    struct output_table table;

    if (rows->count == 0) {
        if (!cli->quiet)
            fputs("nothing is staged\n", cli->err);
        return;
    }
    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < rows->count; i++) {
        const struct outbox_row *row = &rows->items[i];
        struct buffer age = BUFFER_EMPTY;

        output_duration(&age, now - row->created_at);
        output_cell_string(&table, row->route);
        output_cell_string(&table, row->type);
        output_cell_string(&table,
                           row->ordering_key != NULL ? row->ordering_key : "");
        output_cell_string(&table, row->status);
        output_cell(&table, buffer_text(&age));
        output_cell_string(&table, row->event_id);
        buffer_free(&age);
    }
    output_table_end(&table, cli->out);
    if (rows->more && !cli->quiet)
        fprintf(cli->err, "the first %zu; --limit shows more\n", rows->count);
}

static void print_field(struct cli *cli, const char *name, const char *value)
{
    output_field(cli->out, FIELD_WIDTH, name, text_of(value));
}

static void print_time(struct cli *cli, const char *name, int64_t time)
{
    if (time != 0)
        output_field_time(cli->out, FIELD_WIDTH, name, time);
}

static void print_whole(struct cli *cli, const struct outbox_row *row)
{
    print_field(cli, "publisher", row->route);
    print_field(cli, "type", row->type);
    print_field(cli, "event id", row->event_id);
    print_field(cli, "status", row->status);
    print_field(cli, "ordering key", row->ordering_key);
    print_field(cli, "tenant id", row->tenant_id);
    print_field(cli, "execution id", row->execution_id);
    print_field(cli, "correlation id", row->correlation_id);
    print_field(cli, "causation id", row->causation_id);
    print_field(cli, "metadata", row->metadata);
    print_time(cli, "occurred at", row->occurred_at);
    print_time(cli, "staged at", row->created_at);
    print_time(cli, "published at", row->published_at);
    print_field(cli, "last error", row->last_error);
    print_field(cli, "payload", row->payload);
}

/* --- the verb ------------------------------------------------------------ */

struct request {
    const char *word; /* list, show, retry */
    struct outbox_filter filter;
    char id[UUID_TEXT_LEN + 1];
    int64_t limit;
};

static bool is(const struct request *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

static enum status take_id(const char *given, struct request *r,
                           struct diag *diag)
{
    struct uuid uuid;

    if (!uuid_parse(text_of(given), &uuid))
        return diag_set(diag, STATUS_USAGE, "'%.100s' is not a UUID", given);
    uuid_format(&uuid, r->id);
    r->filter.id = r->id;
    return STATUS_OK;
}

/* Nothing is tried again that nobody has asked for. */
static enum status check_retry(const struct cli *cli, const struct request *r,
                               struct diag *diag)
{
    const struct outbox_filter *f = &r->filter;
    bool all = cli_given(cli, "all");

    if (f->status != NULL && strcmp(f->status, "parked") != 0)
        return diag_set(diag, STATUS_USAGE,
                        "outbox retry is of messages that are parked");
    if (all && f->id != NULL)
        return diag_set(diag, STATUS_USAGE,
                        "--all and one message do not go together");
    if (all || f->id != NULL || f->route != NULL || f->type != NULL)
        return STATUS_OK;
    return diag_set(diag, STATUS_USAGE,
                    "outbox retry needs to know which messages: an id, "
                    "--publisher, --type, or --all");
}

static enum status take_request(const struct cli *cli, struct request *r,
                                struct diag *diag)
{
    enum status status = STATUS_OK;

    *r = (struct request){
        .word = cli->nargs > 0 ? cli->args[0] : "list",
        .filter = {.route = cli_value(cli, "publisher"),
                   .status = cli_value(cli, "status"),
                   .type = cli_value(cli, "type")},
    };
    if (is(r, "show") && cli->nargs < 2)
        return diag_set(diag, STATUS_USAGE,
                        "outbox show takes the id of a message; moontide "
                        "outbox lists them");
    if (cli->nargs > 1)
        status = take_id(cli->args[1], r, diag);
    if (status == STATUS_OK && cli_given(cli, "all") && !is(r, "retry"))
        status = diag_set(diag, STATUS_USAGE, "--all is for outbox retry");
    if (status == STATUS_OK && is(r, "retry"))
        status = check_retry(cli, r, diag);
    if (status != STATUS_OK)
        return status;
    return cli_integer(cli, "limit", LIMIT_DEFAULT, 1, INT32_MAX, &r->limit,
                       diag);
}

static void print(struct cli *cli, const struct application *app,
                  const struct outbox_rows *rows, bool whole)
{
    if (cli->json)
        print_json(cli, rows);
    else if (!whole)
        print_table(cli, rows, clock_now(&app->clock));
    for (size_t i = 0; whole && !cli->json && i < rows->count; i++) {
        fputs(i > 0 ? "\n" : "", cli->out);
        print_whole(cli, &rows->items[i]);
    }
}

static enum status look(struct cli *cli, struct application *app,
                        const struct request *r, struct diag *diag)
{
    bool whole = is(r, "show");
    struct arena arena = ARENA_EMPTY;
    struct outbox_rows rows;
    enum status status = outbox_list(app->db, app->catalog, &r->filter,
                                     (size_t)r->limit, whole, &arena, &rows,
                                     diag);

    if (status == STATUS_OK && whole && rows.count == 0)
        status = diag_set(diag, STATUS_FAILED,
                          "the outbox has no message %s; moontide outbox lists "
                          "them",
                          r->id);
    if (status == STATUS_OK)
        print(cli, app, &rows, whole);
    arena_free(&arena);
    return status;
}

static void print_retried(struct cli *cli, int64_t count)
{
    struct buffer line = BUFFER_EMPTY;

    if (cli->json) {
        fprintf(cli->out, "{\"changed\":%" PRId64 "}\n", count);
        return;
    }
    if (cli->quiet)
        return;
    if (count == 0) {
        fputs("no parked message matches: nothing changed\n", cli->out);
        return;
    }
    operator_count(&line, count, "message");
    fprintf(cli->out, "%s pending again\n", line.data);
    buffer_free(&line);
}

static enum status retry(struct cli *cli, struct application *app,
                         const struct request *r, struct diag *diag)
{
    const struct operate_env env = {
        .db = app->db,
        .catalog = app->catalog,
        .names = &app->settings->names,
        .clock = &app->clock,
        .notify = app->settings->notify,
        .stop = stop_on_signals(),
    };
    int64_t changed;
    enum status status = outbox_retry(&env, &r->filter, &changed, diag);

    if (status == STATUS_OK)
        print_retried(cli, changed);
    return status;
}

enum status cli_outbox(struct cli *cli, struct diag *diag)
{
    struct application app;
    struct request r;
    enum status status = take_request(cli, &r, diag);

    if (status == STATUS_OK)
        status = cli_open(
            cli, is(&r, "retry") ? APPLICATION_ROWS : APPLICATION_READ_ONLY,
            &app, diag);
    if (status != STATUS_OK)
        return status;
    status = is(&r, "retry") ? retry(cli, &app, &r, diag)
                             : look(cli, &app, &r, diag);
    application_close(&app);
    return status;
}
