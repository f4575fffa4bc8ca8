#include "model/field_value.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DECIMAL_LENGTH 80 /* sign, point, 65 digits and some */

/* --- types that are text ----------------------------------------------------
 */

/* Writes [-]digits[.digits] with exactly `scale` digits behind the point;
 * false when `text` is no such number or does not fit. */
static bool normalise_decimal(struct text text, int precision, int scale,
                              char out[DECIMAL_LENGTH])
{
    const char *at = text.data, *end = at + text.len;
    const char *whole, *fraction = "";
    int nwhole, nfraction = 0;
    bool zero = true;

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    while (end - at > 1 && at[0] == '0' && at[1] >= '0' && at[1] <= '9')
        at++;
    whole = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    nwhole = (int)(at - whole);
    if (at < end && *at == '.') {
        fraction = ++at;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        nfraction = (int)(at - fraction);
        if (nfraction == 0)
            return false;
    }
    while (nfraction > 0 && nfraction > scale && fraction[nfraction - 1] == '0')
        nfraction--;
    if (at != end || nwhole == 0 || nfraction > scale ||
        nwhole - (*whole == '0') > precision - scale)
        return false;
    for (at = whole; at < end; at++)
        zero = zero && (*at == '0' || *at == '.');
    snprintf(out, DECIMAL_LENGTH, "%s%.*s%s%.*s%0*d",
             *text.data == '-' && !zero ? "-" : "", nwhole, whole,
             scale > 0 ? "." : "", nfraction, fraction,
             scale > nfraction ? scale - nfraction : 0, 0);
    if (scale == nfraction) /* "%0*d" wrote a digit too many */
        out[strlen(out) - 1] = '\0';
    return true;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* Padded base64 of RFC 4648, nothing else. */
static bool decode_base64(struct text text, struct arena *arena,
                          struct text *out)
{
    size_t padding = 0;
    char *bytes = arena_alloc(arena, text.len + 1);
    size_t len = 0;

    if (text.len % 4 != 0)
        return false;
    while (padding < 2 && padding < text.len &&
           text.data[text.len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.len; i += 4) {
        unsigned long group = 0;

        for (size_t j = i; j < i + 4; j++) {
            int digit = j >= text.len - padding ? 0
                                                : base64_digit(text.data[j]);

            if (digit < 0)
                return false;
            group = group << 6 | (unsigned long)digit;
        }
        bytes[len++] = (char)(group >> 16 & 0xff);
        bytes[len++] = (char)(group >> 8 & 0xff);
        bytes[len++] = (char)(group & 0xff);
    }
    *out = (struct text){bytes, len - padding};
    return true;
}

static bool is_word(const char *const *words, struct text text)
{
    for (; *words != NULL; words++)
        if (text_equal(text, text_of(*words)))
            return true;
    return false;
}

const char *field_value_words(const struct declaration_field *field,
                              struct arena *arena)
{
    struct buffer list = BUFFER_EMPTY;
    const char *copy;

    buffer_append_string(&list, "one of ");
    for (size_t i = 0; field->values[i] != NULL; i++)
        buffer_printf(&list, "%s%s", i > 0 ? ", " : "", field->values[i]);
    copy = arena_string(arena, buffer_text(&list));
    buffer_free(&list);
    return copy;
}

/* 12:00:00.500 as 12:00:00.5: one text for one time. */
static struct text trim_time(struct text text)
{
    if (text.len > 8) {
        while (text.data[text.len - 1] == '0')
            text.len--;
        if (text.data[text.len - 1] == '.')
            text.len--;
    }
    return text;
}

static bool is_date(struct text text)
{
    char instant[CLOCK_TEXT_SIZE] = "YYYY-MM-DDT00:00:00Z";
    int64_t us;

    if (text.len != 10)
        return false;
    memcpy(instant, text.data, 10);
    return clock_parse(text_of(instant), &us, NULL) == STATUS_OK;
}

static bool is_time(struct text text)
{
    char instant[48] = "2000-01-01T";
    int64_t us;

    if (text.len < 8 || text.len > 15)
        return false;
    memcpy(instant + 11, text.data, text.len);
    instant[11 + text.len] = 'Z';
    instant[12 + text.len] = '\0';
    return clock_parse(text_of(instant), &us, NULL) == STATUS_OK;
}

bool field_value_from_text(const struct declaration_field *field,
                           struct text text, struct arena *arena,
                           struct db_value *value, const char **wants)
{
    char decimal[DECIMAL_LENGTH];
    struct text bytes;
    struct uuid uuid;
    int64_t us;

    *wants = "UTF-8 text without NUL";
    if (!text_utf8_valid(text) || memchr(text.data, '\0', text.len) != NULL)
        return false;
    switch (field->type) {
    case FIELD_ENUM:
        if (!is_word(field->values, text)) {
            *wants = field_value_words(field, arena);
            return false;
        }
        break;
    case FIELD_DECIMAL:
        *wants = "a decimal as a string";
        if (!normalise_decimal(text, field->precision, field->scale, decimal))
            return false;
        *value = db_decimal(arena_copy(arena, text_of(decimal)));
        return true;
    case FIELD_DATE:
        *wants = "a date YYYY-MM-DD";
        if (!is_date(text))
            return false;
        break;
    case FIELD_TIME:
        *wants = "a time HH:MM:SS";
        if (!is_time(text))
            return false;
        text = trim_time(text);
        break;
    case FIELD_TIMESTAMP:
        *wants = "an RFC 3339 time";
        if (clock_parse(text, &us, NULL) != STATUS_OK)
            return false;
        *value = db_timestamp(us);
        return true;
    case FIELD_UUID:
        *wants = "a UUID";
        if (!uuid_parse(text, &uuid))
            return false;
        *value = db_uuid(uuid);
        return true;
    case FIELD_BYTES:
        *wants = "bytes as base64 text";
        if (!decode_base64(text, arena, &bytes))
            return false;
        *value = db_bytes(bytes);
        return true;
    case FIELD_TEXT:
    case FIELD_INTEGER:
    case FIELD_DOUBLE:
    case FIELD_BOOLEAN:
        break;
    case FIELD_LIST:
    case FIELD_SET:
    case FIELD_RECORD: /* no text stands for them */
        return false;
    }
    *value = db_text_value(arena_copy(arena, text));
    return true;
}

/* --- any type
 * ----------------------------------------------------------------- */

static bool parse_double(struct text text, double *value)
{
    char digits[64], *end;
    struct json_value json;

    if (text.len == 0 || text.len >= sizeof(digits) ||
        json_check(text, NULL, NULL) != STATUS_OK)
        return false;
    json = json_first(text);
    if (json.kind != JSON_NUMBER)
        return false;
    memcpy(digits, text.data, text.len);
    digits[text.len] = '\0';
    *value = strtod(digits, &end);
    return *end == '\0' && isfinite(*value);
}

static bool parse_integer(struct text text, int64_t *value)
{
    struct json_value json;

    if (json_check(text, NULL, NULL) != STATUS_OK)
        return false;
    json = json_first(text);
    return json.kind == JSON_NUMBER && json_decode_int64(json, value);
}

enum status field_value_parse(const struct declaration_field *field,
                              struct text text, struct arena *arena,
                              struct db_value *value, struct diag *diag)
{
    const char *wants;
    int64_t integer;
    double number;
    bool good;

    switch (field->type) {
    case FIELD_INTEGER:
        wants = "an integer of 64 bits";
        good = parse_integer(text, &integer);
        if (good)
            *value = db_integer(integer);
        break;
    case FIELD_DOUBLE:
        wants = "a number";
        good = parse_double(text, &number);
        if (good)
            *value = db_number(number);
        break;
    case FIELD_BOOLEAN:
        wants = "true or false";
        good = text_equal(text, TEXT_LITERAL("true")) ||
               text_equal(text, TEXT_LITERAL("false"));
        if (good)
            *value = db_boolean(text.data[0] == 't');
        break;
    default:
        good = field_value_from_text(field, text, arena, value, &wants);
    }
    if (good)
        return STATUS_OK;
    return diag_set(diag, STATUS_INVALID,
                    "field '%s' takes %s, not '" TEXT_FORMAT "'", field->name,
                    wants, TEXT_ARGS(text));
}
