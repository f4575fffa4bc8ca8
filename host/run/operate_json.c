#include "run/operate_json.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_member.h"
#include "base/memory.h"

#include <inttypes.h>

void operate_json_result(struct buffer *out,
                         const struct operate_result *result)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "consumer", result->name);
    json_member_string(out, &first, "type", result->type);
    json_member_bool(out, &first, "changed", result->changed);
    json_member_string(out, &first, "state_before",
                       consumer_state_word(result->before));
    if (result->reason_before != HALT_NONE)
        json_member_string(out, &first, "halt_reason_before",
                           halt_reason_word(result->reason_before));
    if (!result->gone)
        json_member_string(out, &first, "state",
                           consumer_state_word(result->after));
    if (!result->gone && result->reason_after != HALT_NONE)
        json_member_string(out, &first, "halt_reason",
                           halt_reason_word(result->reason_after));
    json_member_bool(out, &first, "gone", result->gone);
    json_member_int64(out, &first, "retried", result->retried);
    json_member_int64(out, &first, "undelivered_removed", result->undelivered);
    json_member_int64(out, &first, "skips", result->skipped);
    json_member_int64(out, &first, "checkpoints_removed", result->checkpoints);
    if (result->unread != NULL)
        json_member_string(out, &first, "unread_topic", result->unread);
    if (result->declaration_accepted)
        json_member_bool(out, &first, "declaration_accepted", true);
    if (result->incomplete_through > 0)
        json_member_int64(out, &first, "incomplete_through",
                          result->incomplete_through);
    buffer_append_char(out, '}');
}

void operate_json_rebuild(struct buffer *out, const struct rebuild_order *order,
                          const struct rebuild_report *report)
{
    bool first = true;
    bool whole = !order->cancel && order->key == NULL;
    const struct rebuild_result *result = whole ? &report->reset
                                                : &report->asked;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "consumer", order->consumer);
    if (order->key != NULL) {
        json_member_string(out, &first, "key", order->key);
        json_member_bool(out, &first, "changed", true);
        json_member_int64(out, &first, "messages", report->applied);
        buffer_append_char(out, '}');
        return;
    }
    json_member_bool(out, &first, "changed", result->changed);
    json_member_string(out, &first, "state_before",
                       consumer_state_word(report->asked.was));
    json_member_string(out, &first, "state",
                       consumer_state_word(result->changed
                                               ? CONSUMER_RUNNING
                                               : report->asked.was));
    if (!result->changed)
        result = &report->asked;
    json_member_int64(out, &first, "epoch", result->epoch);
    if (result->replay_through != CHECKPOINT_NONE)
        json_member_int64(out, &first, "replay_through",
                          result->replay_through);
    buffer_append_char(out, '}');
}

/* --- letters -------------------------------------------------------------- */

/* Whoever wrote around the host may have stored bytes that are no text: they
 * are shown as question marks. */
static void write_text(struct buffer *out, bool *first, const char *key,
                       struct text text)
{
    json_write_key(out, first, key);
    if (text.data == NULL) {
        buffer_append_string(out, "null");
    } else if (text_utf8_valid(text)) {
        json_write_string(out, text);
    } else {
        char *clean = mem_alloc(text.len + 1);

        text_clean(text, clean, text.len + 1);
        json_write_string(out, text_of(clean));
        mem_free(clean);
    }
}

/* Byte for byte; what is no JSON becomes a string. */
static void write_document(struct buffer *out, bool *first, const char *key,
                           struct text json)
{
    struct diag ignored;

    if (json.data == NULL || json_check(json, NULL, &ignored) != STATUS_OK) {
        write_text(out, first, key, json);
        return;
    }
    json_member_raw(out, first, key, json);
}

static void write_message(struct buffer *out, const struct message *m)
{
    bool first = true;

    if (m->position == 0) {
        buffer_append_string(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    json_member_id(out, &first, "id", &m->id);
    write_text(out, &first, "type", m->type);
    json_member_int64(out, &first, "revision", m->revision);
    write_text(out, &first, "key", m->key);
    write_text(out, &first, "aggregate_type", m->aggregate_type);
    write_text(out, &first, "aggregate_id", m->aggregate_id);
    json_member_int64(out, &first, "sequence", m->sequence);
    write_document(out, &first, "payload", m->payload);
    write_document(out, &first, "metadata", m->metadata);
    json_member_time(out, &first, "occurred_at", m->occurred_at);
    buffer_append_char(out, '}');
}

static void write_letter(struct buffer *out, const struct letter *l, bool whole)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "id", l->rows[0].id);
    json_member_string(out, &first, "consumer", l->consumer);
    json_member_string(out, &first, "consumer_type", l->consumer_type);
    json_member_string(out, &first, "topic", l->source);
    json_member_int64(out, &first, "position", l->position);
    write_text(out, &first, "key", l->key);
    json_member_string(out, &first, "type", l->type);
    json_member_string(out, &first, "status", l->status);
    json_member_int64(out, &first, "failures", l->failures);
    if (l->next_retry_at != 0)
        json_member_time(out, &first, "next_retry_at", l->next_retry_at);
    json_member_time(out, &first, "recorded_at", l->recorded_at);
    json_member_string(out, &first, "reason", l->reason);
    json_member_bool(out, &first, "unresolved", l->unresolved);
    json_write_key(out, &first, "partitions");
    for (size_t i = 0; i < l->nrows; i++)
        buffer_printf(out, "%s%d", i > 0 ? "," : "[", l->rows[i].partition);
    buffer_append_char(out, ']');
    if (whole) {
        json_write_key(out, &first, "message");
        write_message(out, &l->message);
    }
    buffer_append_char(out, '}');
}

void operate_json_letters(struct buffer *out, const struct letters *letters,
                          bool whole)
{
    buffer_append_string(out, "{\"messages\":[");
    for (size_t i = 0; i < letters->count; i++) {
        if (i > 0)
            buffer_append_string(out, ",\n");
        write_letter(out, &letters->items[i], whole);
    }
    buffer_printf(out, "],\"total\":%" PRId64 "}", letters->total);
}

void operate_json_change(struct buffer *out, const struct letters_result *r,
                         bool deleted)
{
    const char *word = deleted ? "deleted" : "retried";
    bool first = true;

    buffer_append_char(out, '{');
    json_member_int64(out, &first, word, r->changed);
    if (!deleted) {
        json_member_int64(out, &first, "due", r->due);
        json_member_int64(out, &first, "waiting", r->waiting);
    }
    json_write_key(out, &first, "consumers");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < r->nconsumers; i++) {
        const struct letters_consumer *c = &r->consumers[i];
        bool inner = true;

        buffer_append_string(out, i > 0 ? ",{" : "{");
        json_member_string(out, &inner, "consumer", c->name);
        json_member_string(out, &inner, "type", c->type);
        json_member_string(out, &inner, "state", consumer_state_word(c->state));
        if (c->halt_reason != HALT_NONE)
            json_member_string(out, &inner, "halt_reason",
                               halt_reason_word(c->halt_reason));
        json_member_int64(out, &inner, word, c->changed);
        buffer_append_char(out, '}');
    }
    buffer_append_string(out, "]}");
}
