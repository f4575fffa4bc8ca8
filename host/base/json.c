/* Reading text that json_check accepted. Wrong text gives wrong values, but
 * nothing here reads past its end. */
#include "base/json.h"

#include "base/json_scan.h"
#include "base/utf8.h"

static const char *skip_white(const char *at, const char *end)
{
    while (at < end &&
           (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* `at` is on the opening quote; returns what follows the closing one. */
static const char *skip_string(const char *at, const char *end)
{
    at++;
    while ((at = json_scan_special(at, end)) < end && *at != '"')
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* `at` is on the opening bracket. */
static const char *skip_container(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        switch (*at) {
        case '"':
            at = skip_string(at, end);
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (--depth == 0)
                return at + 1;
            break;
        default:
            break;
        }
        at++;
    }
    return end;
}

/* Numbers and words end where a separator stands. */
static const char *skip_scalar(const char *at, const char *end)
{
    while (at < end && *at != ',' && *at != '}' && *at != ']' && *at != ' ' &&
           *at != '\n' && *at != '\r' && *at != '\t')
        at++;
    return at;
}

/* The value at `at`, which is on its first byte. */
static struct json_value read_value(const char *at, const char *end)
{
    enum json_kind kind;
    const char *after;

    switch (at < end ? *at : '\0') {
    case '{':
        kind = JSON_OBJECT;
        after = skip_container(at, end);
        break;
    case '[':
        kind = JSON_ARRAY;
        after = skip_container(at, end);
        break;
    case '"':
        kind = JSON_STRING;
        after = skip_string(at, end);
        break;
    case 't':
        kind = JSON_TRUE;
        after = skip_scalar(at, end);
        break;
    case 'f':
        kind = JSON_FALSE;
        after = skip_scalar(at, end);
        break;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        kind = JSON_NUMBER;
        after = skip_scalar(at, end);
        break;
    default:
        kind = JSON_NULL;
        after = skip_scalar(at, end);
        break;
    }
    return (struct json_value){kind, {at, (size_t)(after - at)}};
}

struct json_value json_first(struct text t)
{
    const char *data = t.data != NULL ? t.data : "";

    return read_value(skip_white(data, data + t.len), data + t.len);
}

struct json_members json_members_of(struct json_value object)
{
    const char *at = object.raw.data;
    const char *end = at + object.raw.len;

    return (struct json_members){at < end ? at + 1 : end, end};
}

/* The bytes between the quotes, decoded to `scratch` if they have escapes. */
static struct text key_text(struct text quoted, struct buffer *scratch)
{
    struct text inner = {quoted.data + 1, quoted.len > 1 ? quoted.len - 2 : 0};

    if (inner.len == 0 || memchr(inner.data, '\\', inner.len) == NULL)
        return inner;
    buffer_clear(scratch);
    json_decode_string((struct json_value){JSON_STRING, quoted}, scratch);
    return buffer_text(scratch);
}

bool json_members_next(struct json_members *members, struct buffer *scratch,
                       struct text *key, struct json_value *value)
{
    const char *end = members->end;
    const char *at = skip_white(members->at, end);
    const char *after;

    if (at < end && *at == ',')
        at = skip_white(at + 1, end);
    if (at == end || *at != '"') {
        members->at = end;
        return false;
    }
    after = skip_string(at, end);
    *key = key_text((struct text){at, (size_t)(after - at)}, scratch);
    at = skip_white(after, end);
    if (at < end && *at == ':')
        at = skip_white(at + 1, end);
    *value = read_value(at, end);
    members->at = value->raw.data + value->raw.len;
    return true;
}

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t c = (unsigned char)at[i];

        value = value << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value & 0xFFFF;
}

/* Decodes the escape at `at` (a backslash), returns what follows it. */
static const char *decode_escape(const char *at, const char *end,
                                 struct buffer *out)
{
    static const char letters[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    const char *letter;
    char utf8[4];
    uint32_t code;

    if (end - at < 2)
        return end;
    if (at[1] != 'u') {
        letter = at[1] != '\0' ? strchr(letters, at[1]) : NULL;
        buffer_append_char(out,
                           letter != NULL ? meant[letter - letters] : at[1]);
        return at + 2;
    }
    if (end - at < 6)
        return end;
    code = hex4(at + 2);
    at += 6;
    if (code >= 0xD800 && code <= 0xDBFF && end - at >= 6) {
        code = 0x10000 + ((code & 0x3FF) << 10) + (hex4(at + 2) & 0x3FF);
        at += 6;
    }
    buffer_append(out, utf8, utf8_encode(code, utf8));
    return at;
}

void json_decode_string(struct json_value v, struct buffer *out)
{
    const char *at = v.raw.data + 1;
    const char *end = v.raw.data + v.raw.len - 1; /* on the closing quote */

    if (v.raw.len < 2)
        return;
    buffer_reserve(out, (size_t)(end - at));
    while (at < end) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        const char *stop = slash != NULL ? slash : end;

        buffer_append(out, at, (size_t)(stop - at));
        at = stop < end ? decode_escape(stop, end, out) : end;
    }
}

bool json_decode_int64(struct json_value v, int64_t *out)
{
    const char *at = v.raw.data;
    const char *end = at + v.raw.len;
    bool negative;
    int64_t value = 0;

    if (v.kind != JSON_NUMBER)
        return false;
    negative = at < end && *at == '-';
    at += negative;
    if (at == end)
        return false;
    /* Downwards, because the negative side reaches one further. */
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *at - '0', &value))
            return false;
    }
    if (!negative && __builtin_sub_overflow(0, value, &value))
        return false;
    *out = value;
    return true;
}
