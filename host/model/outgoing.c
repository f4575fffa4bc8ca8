#include "model/outgoing.h"

#include "base/json.h"
#include "base/json_member.h"

#include <string.h>

static enum status check_text(const char *what, struct text text, bool optional,
                              struct diag *diag)
{
    size_t chars;

    if (optional && text.data == NULL)
        return STATUS_OK;
    if (text.len == 0)
        return diag_set(diag, STATUS_LIMIT, "%s is empty", what);
    if (memchr(text.data, '\0', text.len) != NULL || !text_utf8_valid(text))
        return diag_set(diag, STATUS_LIMIT,
                        "%s is not valid UTF-8 without NUL characters", what);
    chars = text_utf8_length(text);
    if (chars > OUTGOING_TEXT_MAX)
        return diag_set(diag, STATUS_LIMIT,
                        "%s has %zu characters, at most %d are possible", what,
                        chars, OUTGOING_TEXT_MAX);
    return STATUS_OK;
}

enum status outgoing_check(const struct outgoing *m, struct diag *diag)
{
    enum status status = check_text("the publisher", m->route, false, diag);

    if (status == STATUS_OK && !m->again)
        status = check_text("the message type", m->type, false, diag);
    if (status == STATUS_OK)
        status = check_text("the ordering key", m->ordering_key, true, diag);
    if (status == STATUS_OK)
        status = check_text("the traceparent", m->traceparent, true, diag);
    return status;
}

static bool find_correlation(struct text metadata, struct buffer *out)
{
    struct buffer scratch = BUFFER_EMPTY;
    struct json_members members;
    struct json_value root, value;
    struct text key;
    bool found = false;

    if (metadata.data == NULL || json_check(metadata, NULL, NULL) != STATUS_OK)
        return false;
    root = json_first(metadata);
    if (root.kind != JSON_OBJECT)
        return false;
    members = json_members_of(root);
    while (!found && json_members_next(&members, &scratch, &key, &value)) {
        found = value.kind == JSON_STRING &&
                text_equal(key, TEXT_LITERAL("correlation_id"));
        if (found)
            json_decode_string(value, out);
    }
    buffer_free(&scratch);
    return found;
}

void outgoing_correlation(const struct message *cause, struct buffer *out)
{
    char id[UUID_TEXT_LEN + 1];

    if (find_correlation(cause->metadata, out))
        return;
    uuid_format(&cause->id, id);
    buffer_append_string(out, id);
}

void outgoing_trace(struct outgoing *outgoing, const struct message *cause,
                    const struct outgoing_saga *saga, struct arena *arena)
{
    struct uuid *ids = arena_alloc(arena, 2 * sizeof(*ids));
    struct buffer correlation = BUFFER_EMPTY, metadata = BUFFER_EMPTY;
    bool first = true, is_uuid;

    ids[0] = cause->id;
    outgoing->causation_id = &ids[0];
    outgoing_correlation(cause, &correlation);
    is_uuid = uuid_parse(buffer_text(&correlation), &ids[1]);
    outgoing->correlation_id = is_uuid ? &ids[1] : NULL;
    buffer_append_char(&metadata, '{');
    if (!is_uuid)
        json_member_text(&metadata, &first, "correlation_id",
                         buffer_text(&correlation));
    if (saga != NULL) {
        json_member_text(&metadata, &first, "saga_id", saga->id);
        json_member_text(&metadata, &first, "saga_type", text_of(saga->type));
    }
    buffer_append_char(&metadata, '}');
    if (!first)
        outgoing->metadata = arena_copy(arena, buffer_text(&metadata));
    buffer_free(&metadata);
    buffer_free(&correlation);
}

struct text outgoing_chain(const struct message *cause,
                           const struct outgoing_saga *saga,
                           struct arena *arena)
{
    struct buffer correlation = BUFFER_EMPTY, out = BUFFER_EMPTY;
    char id[UUID_TEXT_LEN + 1];
    bool first = true;
    struct text kept;

    outgoing_correlation(cause, &correlation);
    uuid_format(&cause->id, id);
    buffer_append_char(&out, '{');
    json_member_text(&out, &first, "correlation_id", buffer_text(&correlation));
    json_member_text(&out, &first, "causation_id", text_of(id));
    json_member_text(&out, &first, "saga_id", saga->id);
    json_member_text(&out, &first, "saga_type", text_of(saga->type));
    buffer_append_char(&out, '}');
    kept = arena_copy(arena, buffer_text(&out));
    buffer_free(&out);
    buffer_free(&correlation);
    return kept;
}
