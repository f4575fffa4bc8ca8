#include "cli/event_print.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_member.h"
#include "cli/output.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define POSITION_WIDTH 10
#define TIME_WIDTH     (CLOCK_TEXT_SIZE - 1)
#define COLUMN_MAX     ((size_t)40) /* wider types and keys push their line */
#define PAYLOAD_MIN    ((size_t)20)
#define GAP            "  "
#define CUT            "..."

static size_t width_of_terminal(FILE *out)
{
    struct winsize size;

    if (isatty(fileno(out)) != 1)
        return 0;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

void event_print_start(struct event_print *print, const struct cli *cli)
{
    *print = (struct event_print){
        .cli = cli,
        .exported = cli_given(cli, "export"),
        .type_width = strlen("type"),
        .key_width = strlen("key"),
        .terminal_width = width_of_terminal(cli->out),
    };
}

void event_print_end(struct event_print *print)
{
    buffer_free(&print->line);
    buffer_free(&print->cell);
}

/* Byte for byte, but a line break between tokens must not end the line. */
static void write_document(struct buffer *out, bool *first, const char *key,
                           struct text json)
{
    size_t start;

    json_write_key(out, first, key);
    if (json.data == NULL) {
        buffer_append_string(out, "null");
        return;
    }
    start = out->len;
    buffer_append_text(out, json);
    for (size_t i = start; i < out->len; i++) {
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    }
}

static void print_json(struct event_print *print, const struct message *message)
{
    struct buffer *out = &print->line;
    bool first = true;

    buffer_append_char(out, '{');
    json_member_int64(out, &first, "position", message->position);
    json_member_id(out, &first, "id", &message->id);
    json_member_text(out, &first, "type", message->type);
    json_member_int64(out, &first, "revision", message->revision);
    json_member_text(out, &first, "key", message->key);
    json_member_int64(out, &first, "partition", message->partition);
    if (message->aggregate_type.data != NULL) {
        json_member_text(out, &first, "aggregate_type",
                         message->aggregate_type);
        json_member_text(out, &first, "aggregate_id", message->aggregate_id);
        json_member_int64(out, &first, "sequence", message->sequence);
    }
    write_document(out, &first, "payload", message->payload);
    write_document(out, &first, "metadata", message->metadata);
    json_member_time(out, &first, "occurred_at", message->occurred_at);
    buffer_append_char(out, '}');
}

/* The fields of append or emit, and nothing that another database gives anew.
 */
static void print_export(struct event_print *print,
                         const struct message *message)
{
    struct buffer *out = &print->line;
    bool first = true;

    buffer_append_char(out, '{');
    json_member_id(out, &first, "id", &message->id);
    if (message->aggregate_type.data != NULL) {
        json_member_text(out, &first, "aggregate_type",
                         message->aggregate_type);
        json_member_text(out, &first, "aggregate_id", message->aggregate_id);
    } else if (message->key.data != NULL) {
        json_member_text(out, &first, "key", message->key);
    }
    json_member_text(out, &first, "type", message->type);
    /* 0 as well: a line that names none gets the newest of its type */
    json_member_int64(out, &first, "revision", message->revision);
    json_member_time(out, &first, "occurred_at", message->occurred_at);
    write_document(out, &first, "payload", message->payload);
    if (message->metadata.data != NULL)
        write_document(out, &first, "metadata", message->metadata);
    buffer_append_char(out, '}');
}

static size_t wider(struct event_print *print, size_t width, struct text text)
{
    size_t wanted;

    buffer_clear(&print->cell);
    output_safe(&print->cell, text);
    wanted = output_width(buffer_text(&print->cell));
    if (wanted > COLUMN_MAX)
        wanted = COLUMN_MAX;
    return wanted > width ? wanted : width;
}

static void add_cell(struct event_print *print, struct text text, size_t width)
{
    size_t used;

    buffer_clear(&print->cell);
    output_safe(&print->cell, text);
    buffer_append_text(&print->line, buffer_text(&print->cell));
    for (used = output_width(buffer_text(&print->cell)); used < width; used++)
        buffer_append_char(&print->line, ' ');
    buffer_append_string(&print->line, GAP);
}

static void add_payload(struct event_print *print, struct text payload)
{
    size_t used = output_width(buffer_text(&print->line));
    struct text shown;

    buffer_clear(&print->cell);
    if (print->terminal_width == 0) {
        output_safe(&print->line, payload);
        return;
    }
    /* no more characters than columns can be seen */
    payload.len = text_utf8_prefix_chars(payload, print->terminal_width + 1);
    output_safe(&print->cell, payload);
    shown = buffer_text(&print->cell);
    if (used + output_width(shown) > print->terminal_width) {
        size_t room = PAYLOAD_MIN;

        if (print->terminal_width > used + PAYLOAD_MIN)
            room = print->terminal_width - used;
        room -= strlen(CUT);
        while (output_width(shown) > room)
            shown.len = text_utf8_prefix(shown, shown.len - 1);
        buffer_append_text(&print->line, shown);
        buffer_append_string(&print->line, CUT);
        return;
    }
    buffer_append_text(&print->line, shown);
}

static void print_heading(struct event_print *print)
{
    buffer_printf(&print->line, "%*s" GAP "%-*s" GAP "%-*s" GAP, POSITION_WIDTH,
                  "position", UUID_TEXT_LEN, "id", TIME_WIDTH, "occurred_at");
    add_cell(print, TEXT_LITERAL("type"), print->type_width);
    add_cell(print, TEXT_LITERAL("key"), print->key_width);
    buffer_append_string(&print->line, "payload");
}

static void print_row(struct event_print *print, const struct message *message)
{
    char id[UUID_TEXT_LEN + 1];
    char time[CLOCK_TEXT_SIZE];

    uuid_format(&message->id, id);
    clock_format(message->occurred_at, time);
    buffer_printf(&print->line, "%*" PRId64 GAP "%s" GAP "%s" GAP,
                  POSITION_WIDTH, message->position, id, time);
    add_cell(print, message->type, print->type_width);
    add_cell(print, message->key, print->key_width);
    add_payload(print, message->payload);
}

static void end_line(struct event_print *print, bool bold)
{
    bold = bold && print->cli->color_out;
    if (bold)
        fputs("\033[1m", print->cli->out);
    fwrite(print->line.data, 1, print->line.len, print->cli->out);
    fputs(bold ? "\033[0m\n" : "\n", print->cli->out);
    buffer_clear(&print->line);
}

static void print_table(struct event_print *print,
                        const struct event_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct message *message = &page->messages[i];

        print->type_width = wider(print, print->type_width, message->type);
        print->key_width = wider(print, print->key_width, message->key);
    }
    if (!print->headed) {
        print_heading(print);
        end_line(print, true);
        print->headed = true;
    }
    for (size_t i = 0; i < page->count; i++) {
        print_row(print, &page->messages[i]);
        end_line(print, false);
    }
}

void event_print_page(struct event_print *print, const struct event_page *page)
{
    if (page->count == 0)
        return;
    if (!print->cli->json && !print->exported) {
        print_table(print, page);
        return;
    }
    for (size_t i = 0; i < page->count; i++) {
        if (print->exported)
            print_export(print, &page->messages[i]);
        else
            print_json(print, &page->messages[i]);
        end_line(print, false);
    }
}
