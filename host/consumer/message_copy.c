#include "consumer/message_copy.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_member.h"

#include <stdio.h>

/* Whoever writes around the host may store bytes that are no text; a member
 * with this ending holds them in hexadecimal. */
#define HEX_SUFFIX "_hex"

static void write_hex(struct buffer *out, struct text bytes)
{
    static const char digits[] = "0123456789abcdef";

    buffer_append_char(out, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];

        buffer_append_char(out, digits[byte >> 4]);
        buffer_append_char(out, digits[byte & 15]);
    }
    buffer_append_char(out, '"');
}

static void write_text(struct buffer *out, bool *first, const char *key,
                       struct text text)
{
    char name[32];

    if (text.data == NULL)
        return;
    if (text_utf8_valid(text)) {
        json_member_text(out, first, key, text);
        return;
    }
    snprintf(name, sizeof(name), "%s" HEX_SUFFIX, key);
    json_write_key(out, first, name);
    write_hex(out, text);
}

void message_copy_write(const struct message *m, struct buffer *out)
{
    char id[UUID_TEXT_LEN + 1], occurred_at[CLOCK_TEXT_SIZE];
    bool first = true;

    uuid_format(&m->id, id);
    clock_format(m->occurred_at, occurred_at);
    buffer_append_char(out, '{');
    json_member_int64(out, &first, "position", m->position);
    write_text(out, &first, "id", text_of(id));
    write_text(out, &first, "key", m->key);
    json_member_int64(out, &first, "partition", m->partition);
    write_text(out, &first, "type", m->type);
    json_member_int64(out, &first, "revision", m->revision);
    write_text(out, &first, "payload", m->payload);
    write_text(out, &first, "metadata", m->metadata);
    write_text(out, &first, "occurred_at", text_of(occurred_at));
    write_text(out, &first, "aggregate_type", m->aggregate_type);
    write_text(out, &first, "aggregate_id", m->aggregate_id);
    json_member_int64(out, &first, "sequence", m->sequence);
    if (m->cascade_depth > 0)
        json_member_int64(out, &first, "cascade_depth", m->cascade_depth);
    buffer_append_char(out, '}');
}

static struct text take_string(struct json_value value, struct arena *arena)
{
    struct buffer decoded = BUFFER_EMPTY;
    struct text copy;

    json_decode_string(value, &decoded);
    copy = arena_copy(arena, buffer_text(&decoded));
    buffer_free(&decoded);
    return copy;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL data when it is no hexadecimal text. */
static struct text take_hex(struct text hex, struct arena *arena)
{
    char *bytes = arena_alloc(arena, hex.len / 2 + 1);

    for (size_t i = 0; i + 1 < hex.len; i += 2) {
        int high = hex_digit(hex.data[i]), low = hex_digit(hex.data[i + 1]);

        if (high < 0 || low < 0)
            return TEXT_NONE;
        bytes[i / 2] = (char)(high << 4 | low);
    }
    bytes[hex.len / 2] = '\0';
    return hex.len % 2 == 0 ? (struct text){bytes, hex.len / 2} : TEXT_NONE;
}

/* Cuts HEX_SUFFIX off the name, if it ends so. */
static bool cut_suffix(struct text *name)
{
    const size_t len = strlen(HEX_SUFFIX);

    if (name->len <= len ||
        memcmp(name->data + name->len - len, HEX_SUFFIX, len) != 0)
        return false;
    name->len -= len;
    return true;
}

/* Fills the field named `key`; false when its value is not what it must be. */
static bool take_field(struct text key, struct json_value value,
                       struct arena *arena, struct message *m)
{
    const struct {
        const char *name;
        struct text *target;
    } texts[] = {
        {"key", &m->key},
        {"type", &m->type},
        {"payload", &m->payload},
        {"metadata", &m->metadata},
        {"aggregate_type", &m->aggregate_type},
        {"aggregate_id", &m->aggregate_id},
    };
    int64_t number = 0;
    struct text text = TEXT_NONE;
    bool is_number = value.kind == JSON_NUMBER &&
                     json_decode_int64(value, &number);

    if (value.kind == JSON_STRING)
        text = take_string(value, arena);
    else if (!is_number)
        return false;
    if (text.data != NULL && cut_suffix(&key))
        text = take_hex(text, arena);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!text_equal(key, text_of(texts[i].name)))
            continue;
        *texts[i].target = text;
        return text.data != NULL;
    }
    if (text_equal(key, TEXT_LITERAL("id")))
        return uuid_parse(text, &m->id);
    if (text_equal(key, TEXT_LITERAL("occurred_at")))
        return clock_parse(text, &m->occurred_at, NULL) == STATUS_OK;
    if (!is_number)
        return false;
    if (text_equal(key, TEXT_LITERAL("position")))
        m->position = number;
    else if (text_equal(key, TEXT_LITERAL("sequence")))
        m->sequence = number;
    else if (text_equal(key, TEXT_LITERAL("partition")))
        m->partition = (int)number;
    else if (text_equal(key, TEXT_LITERAL("revision")))
        m->revision = (int)number;
    else if (text_equal(key, TEXT_LITERAL("cascade_depth")))
        m->cascade_depth = (int)number;
    else
        return false;
    return true;
}

enum status message_copy_read(struct text copy, struct arena *arena,
                              struct message *message, struct diag *diag)
{
    struct buffer scratch = BUFFER_EMPTY;
    struct json_members members;
    struct json_value root, value;
    struct text key;
    enum status status = json_check(copy, NULL, diag);

    *message = (struct message){.position = 0};
    if (status != STATUS_OK)
        return diag_wrap(diag, "a message copy is damaged");
    root = json_first(copy);
    if (root.kind != JSON_OBJECT)
        return diag_set(diag, STATUS_PERMANENT,
                        "a message copy is damaged: it is no object");
    members = json_members_of(root);
    while (json_members_next(&members, &scratch, &key, &value)) {
        if (take_field(key, value, arena, message))
            continue;
        status = diag_set(diag, STATUS_PERMANENT,
                          "a message copy is damaged at '" TEXT_FORMAT "'",
                          TEXT_ARGS(key));
        break;
    }
    buffer_free(&scratch);
    return status;
}

/* No string holds a quote that is not escaped, so this is found only where the
 * member begins. */
static const char payload_member[] = ",\"payload";

static struct text before_payload(struct text copy)
{
    const size_t len = sizeof(payload_member) - 1;

    for (size_t i = 0; i + len <= copy.len; i++)
        if (copy.data[i] == ',' &&
            memcmp(copy.data + i, payload_member, len) == 0)
            return (struct text){copy.data, i};
    return TEXT_NONE;
}

enum status message_copy_read_head(struct text copy, struct arena *arena,
                                   struct message *message, struct diag *diag)
{
    struct text head = before_payload(copy);
    struct buffer closed = BUFFER_EMPTY;
    enum status status;

    if (head.data == NULL)
        return message_copy_read(copy, arena, message, diag);
    buffer_append(&closed, head.data, head.len);
    buffer_append_char(&closed, '}');
    status = message_copy_read(buffer_text(&closed), arena, message, diag);
    buffer_free(&closed);
    return status;
}
