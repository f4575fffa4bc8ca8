#include "cli/dead_letters_print.h"

#include "base/clock.h"
#include "cli/operator.h"
#include "cli/output.h"
#include "run/operate_json.h"

#include <inttypes.h>

static void print_json(struct cli *cli, const struct letters *letters,
                       bool whole)
{
    struct buffer out = BUFFER_EMPTY;

    operate_json_letters(&out, letters, whole);
    buffer_append_char(&out, '\n');
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

/* --- a table -------------------------------------------------------------- */

static void print_rest(struct cli *cli, const struct letters *letters)
{
    struct buffer line = BUFFER_EMPTY;

    if (letters->total > (int64_t)letters->count && !cli->quiet) {
        buffer_append_string(&line, "the first ");
        output_grouped(&line, (int64_t)letters->count);
        buffer_append_string(&line, " of ");
        output_grouped(&line, letters->total);
        fprintf(cli->err, "%s; --limit shows more\n", line.data);
    }
    buffer_free(&line);
}

static void add_row(struct output_table *table, const struct letter *l,
                    int64_t now_us)
{
    struct buffer age = BUFFER_EMPTY;

    output_duration(&age, now_us - l->recorded_at);
    output_cell_string(table, l->consumer);
    output_cell_int64(table, l->position);
    output_cell(table, l->unresolved ? TEXT_LITERAL("?") : l->key);
    output_cell_string(table, l->type);
    output_cell_string(table, l->status);
    output_cell_int64(table, l->failures);
    output_cell(table, buffer_text(&age));
    output_cell_string(table, l->reason != NULL ? l->reason : "");
    buffer_free(&age);
}

void dead_letters_print_list(struct cli *cli, const struct letters *letters,
                             int64_t now_us)
{
    static const char *const headings[] = {"consumer", ">position", "key",
                                           "type",     "status",    ">failures",
                                           ">age",     "reason",    NULL};
    struct output_table table;

    if (cli->json) {
        print_json(cli, letters, false);
        return;
    }
    if (letters->count == 0) {
        if (!cli->quiet)
            fputs("no undelivered message\n", cli->err);
        return;
    }
    output_table_begin(&table, headings, cli->color_out);
    for (size_t i = 0; i < letters->count; i++)
        add_row(&table, &letters->items[i], now_us);
    output_table_end(&table, cli->out);
    print_rest(cli, letters);
}

/* --- one by one ----------------------------------------------------------- */

static void print_message(struct cli *cli, const struct message *m)
{
    struct buffer line = BUFFER_EMPTY;

    if (m->position == 0) {
        output_field(cli->out, OUTPUT_FIELD_WIDTH, "message",
                     TEXT_LITERAL("no copy that can be read"));
        return;
    }
    buffer_append_text(&line, m->aggregate_type);
    buffer_append_char(&line, ' ');
    buffer_append_text(&line, m->aggregate_id);
    buffer_printf(&line, ", sequence %" PRId64, m->sequence);
    output_field_id(cli->out, OUTPUT_FIELD_WIDTH, "message", &m->id);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "stream", buffer_text(&line));
    output_field_time(cli->out, OUTPUT_FIELD_WIDTH, "occurred at",
                      m->occurred_at);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "payload", m->payload);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "metadata", m->metadata);
    buffer_free(&line);
}

static void print_letter(struct cli *cli, const struct letter *l)
{
    struct buffer line = BUFFER_EMPTY;

    buffer_printf(&line, "%s '%s'", l->consumer_type, l->consumer);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "consumer", buffer_text(&line));
    buffer_clear(&line);
    buffer_printf(&line, "%" PRId64 " of topic '%s'", l->position, l->source);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "position", buffer_text(&line));
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "key",
                 l->unresolved ? TEXT_LITERAL("(its keys could not be told)")
                               : l->key);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "type", text_of(l->type));
    buffer_clear(&line);
    buffer_printf(&line, "%s, ", l->status);
    operator_count(&line, l->failures, "failure");
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "status", buffer_text(&line));
    if (l->next_retry_at != 0)
        output_field_time(cli->out, OUTPUT_FIELD_WIDTH, "next retry",
                          l->next_retry_at);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "error",
                 l->reason != NULL
                     ? text_of(l->reason)
                     : TEXT_LITERAL("none: it waits behind another message"));
    output_field_time(cli->out, OUTPUT_FIELD_WIDTH, "recorded at",
                      l->recorded_at);
    output_field(cli->out, OUTPUT_FIELD_WIDTH, "row", text_of(l->rows[0].id));
    print_message(cli, &l->message);
    buffer_free(&line);
}

void dead_letters_print_whole(struct cli *cli, const struct letters *letters)
{
    if (cli->json) {
        print_json(cli, letters, true);
        return;
    }
    for (size_t i = 0; i < letters->count; i++) {
        if (i > 0)
            fputc('\n', cli->out);
        print_letter(cli, &letters->items[i]);
    }
    print_rest(cli, letters);
}

/* --- what changed --------------------------------------------------------- */

static void tell_consumer(struct buffer *out, const struct letters_consumer *c,
                          bool deleted)
{
    buffer_printf(out, "%s '%s': ", c->type, c->name);
    operator_count(out, c->changed, "message");
    buffer_append_string(out, deleted           ? " deleted and skipped"
                              : c->changed == 1 ? " is tried again"
                                                : " are tried again");
    if (c->due > 0)
        buffer_printf(out, ", %" PRId64 " %s tried at once already", c->due,
                      c->due == 1 ? "is" : "are");
    if (c->waiting > 0)
        buffer_printf(out, ", %" PRId64 " only %s behind another one",
                      c->waiting, c->waiting == 1 ? "waits" : "wait");
    if (c->state == CONSUMER_PAUSED || c->state == CONSUMER_HALTED)
        buffer_printf(out, "; it is %s, and moontide resume lets it go on",
                      c->state == CONSUMER_PAUSED ? "paused" : "halted");
}

void dead_letters_print_change(struct cli *cli, const struct letters_result *r,
                               bool deleted)
{
    struct buffer out = BUFFER_EMPTY;
    struct buffer line = BUFFER_EMPTY;

    if (cli->json) {
        operate_json_change(&out, r, deleted);
        buffer_append_char(&out, '\n');
    } else if (r->nconsumers == 0) {
        buffer_append_string(&out, "no message matches: nothing changed\n");
    }
    for (size_t i = 0; !cli->json && i < r->nconsumers; i++) {
        buffer_clear(&line);
        tell_consumer(&line, &r->consumers[i], deleted);
        output_safe(&out, buffer_text(&line));
        buffer_append_char(&out, '\n');
    }
    if (cli->json || !cli->quiet)
        fwrite(buffer_text(&out).data, 1, out.len, cli->out);
    buffer_free(&line);
    buffer_free(&out);
}
