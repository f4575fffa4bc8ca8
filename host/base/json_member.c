#include "base/json_member.h"

#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>

void json_member_text(struct buffer *out, bool *first, const char *key,
                      struct text value)
{
    json_write_key(out, first, key);
    if (value.data == NULL)
        buffer_append_string(out, "null");
    else
        json_write_string(out, value);
}

void json_member_string(struct buffer *out, bool *first, const char *key,
                        const char *value)
{
    json_member_text(out, first, key, text_of(value));
}

void json_member_int64(struct buffer *out, bool *first, const char *key,
                       int64_t value)
{
    json_write_key(out, first, key);
    buffer_printf(out, "%" PRId64, value);
}

void json_member_int64_if(struct buffer *out, bool *first, const char *key,
                          bool known, int64_t value)
{
    if (known)
        json_member_int64(out, first, key, value);
    else
        json_member_text(out, first, key, TEXT_NONE);
}

void json_member_bool(struct buffer *out, bool *first, const char *key,
                      bool value)
{
    json_write_key(out, first, key);
    buffer_append_string(out, value ? "true" : "false");
}

void json_member_time(struct buffer *out, bool *first, const char *key,
                      int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    json_member_string(out, first, key, text);
}

void json_member_time_or_null(struct buffer *out, bool *first, const char *key,
                              int64_t time_us)
{
    if (time_us != 0)
        json_member_time(out, first, key, time_us);
    else
        json_member_text(out, first, key, TEXT_NONE);
}

void json_member_id(struct buffer *out, bool *first, const char *key,
                    const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    if (id != NULL)
        uuid_format(id, text);
    json_member_string(out, first, key, id != NULL ? text : NULL);
}

void json_member_raw(struct buffer *out, bool *first, const char *key,
                     struct text json)
{
    json_write_key(out, first, key);
    buffer_append_text(out, json.data != NULL ? json : TEXT_LITERAL("null"));
}

void json_member_document(struct buffer *out, bool *first, const char *key,
                          struct text json)
{
    if (json.data != NULL && json_check(json, NULL, NULL) == STATUS_OK)
        json_member_raw(out, first, key, json);
    else
        json_member_text(out, first, key, json);
}
