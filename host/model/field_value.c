#include "model/field_value.h"

#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

bool field_value_is_date(struct text text)
{
    char instant[CLOCK_TEXT_SIZE] = "YYYY-MM-DDT00:00:00Z";
    int64_t us;

    if (text.len != 10)
        return false;
    memcpy(instant, text.data, 10);
    return clock_parse(text_of(instant), &us, NULL) == STATUS_OK;
}

bool field_value_is_time(struct text text)
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

static enum status wants(const struct declaration_field *field,
                         struct text text, const char *what, struct diag *diag)
{
    return diag_set(diag, STATUS_INVALID,
                    "field '%s' takes %s, not '" TEXT_FORMAT "'", field->name,
                    what, TEXT_ARGS(text));
}

enum status field_value_parse(const struct declaration_field *field,
                              struct text text, struct db_value *value,
                              struct diag *diag)
{
    int64_t integer;
    double number;
    struct uuid uuid;

    if (!text_utf8_valid(text) || memchr(text.data, '\0', text.len) != NULL)
        return wants(field, text, "valid UTF-8 without NUL", diag);
    switch (field->type) {
    case FIELD_INTEGER:
        if (!parse_integer(text, &integer))
            return wants(field, text, "an integer of 64 bits", diag);
        *value = db_integer(integer);
        return STATUS_OK;
    case FIELD_DOUBLE:
        if (!parse_double(text, &number))
            return wants(field, text, "a number", diag);
        *value = db_number(number);
        return STATUS_OK;
    case FIELD_BOOLEAN:
        if (!text_equal(text, TEXT_LITERAL("true")) &&
            !text_equal(text, TEXT_LITERAL("false")))
            return wants(field, text, "true or false", diag);
        *value = db_boolean(text.data[0] == 't');
        return STATUS_OK;
    case FIELD_TIMESTAMP:
        if (clock_parse(text, &integer, NULL) != STATUS_OK)
            return wants(field, text, "an RFC 3339 time", diag);
        *value = db_timestamp(integer);
        return STATUS_OK;
    case FIELD_UUID:
        if (!uuid_parse(text, &uuid))
            return wants(field, text, "a UUID", diag);
        *value = db_uuid(uuid);
        return STATUS_OK;
    case FIELD_DATE:
        if (!field_value_is_date(text))
            return wants(field, text, "a date YYYY-MM-DD", diag);
        break;
    case FIELD_TIME:
        if (!field_value_is_time(text))
            return wants(field, text, "a time HH:MM:SS", diag);
        break;
    case FIELD_BYTES:
        *value = db_bytes(text);
        return STATUS_OK;
    case FIELD_TEXT:
    case FIELD_ENUM:
    case FIELD_DECIMAL:
        break;
    }
    *value = db_text_value(text);
    return STATUS_OK;
}
