#include "script/value.h"

#include "base/clock.h"
#include "model/field_value.h"
#include "script/int64.h"
#include "script/native.h"

#include <math.h>
#include <stdio.h>

#define TEXT_CHARS    255 /* of a text column */
#define DESCRIBE_SIZE 64
#define NAME_SIZE     256 /* of a name in a message */

void value_describe(lua_State *L, int index, char *out, size_t size)
{
    char shown[DESCRIBE_SIZE];
    struct text text;

    switch (lua_type(L, index)) {
    case LUA_TNIL:
        snprintf(out, size, "nil");
        return;
    case LUA_TBOOLEAN:
        snprintf(out, size, "%s (a boolean)",
                 lua_toboolean(L, index) ? "true" : "false");
        return;
    case LUA_TNUMBER:
        snprintf(out, size, "%.14g (a number)", lua_tonumber(L, index));
        return;
    case LUA_TSTRING:
        text.data = lua_tolstring(L, index, &text.len);
        if (text.len > 32)
            text.len = text_utf8_prefix(text, 32);
        text_clean(text, shown, sizeof(shown));
        snprintf(out, size, "\"%s\" (a string)", shown);
        return;
    case LUA_TLIGHTUSERDATA:
        snprintf(out, size, "null");
        return;
    default:
        snprintf(out, size, "a %s", lua_typename(L, lua_type(L, index)));
    }
}

const char *value_name(lua_State *L, int index)
{
    char shown[NAME_SIZE];
    struct text name = TEXT_LITERAL("?");

    if (lua_type(L, index) == LUA_TSTRING)
        name.data = lua_tolstring(L, index, &name.len);
    if (name.len >= sizeof(shown))
        name.len = text_utf8_prefix(name, sizeof(shown) - 1);
    text_clean(name, shown, sizeof(shown));
    lua_pushstring(L, shown);
    return lua_tostring(L, -1);
}

static bool is_null(lua_State *L, int index)
{
    return lua_isnil(L, index) || (lua_type(L, index) == LUA_TLIGHTUSERDATA &&
                                   lua_touserdata(L, index) == NULL);
}

static bool is_text(struct text text)
{
    return text_utf8_valid(text) && memchr(text.data, '\0', text.len) == NULL;
}

static enum status number_parameter(lua_State *L, int index,
                                    struct db_value *value, struct diag *diag)
{
    lua_Number number = lua_tonumber(L, index);
    int64_t integer;

    if (isnan(number) || isinf(number))
        return diag_set(diag, STATUS_INVALID, "is %s, which SQL does not know",
                        isnan(number) ? "NaN" : "infinite");
    if (int64_read(L, index, &integer) == INT64_VALUE)
        *value = db_integer(integer);
    else
        *value = db_number(number);
    return STATUS_OK;
}

enum status value_parameter(lua_State *L, int index, struct db_value *value,
                            struct diag *diag)
{
    char shown[2 * DESCRIBE_SIZE];
    struct text text;
    int64_t integer;

    switch (lua_type(L, index)) {
    case LUA_TNIL:
        *value = db_null();
        return STATUS_OK;
    case LUA_TBOOLEAN:
        *value = db_boolean(lua_toboolean(L, index) != 0);
        return STATUS_OK;
    case LUA_TNUMBER:
        return number_parameter(L, index, value, diag);
    case LUA_TSTRING:
        text.data = lua_tolstring(L, index, &text.len);
        if (!is_text(text))
            return diag_set(diag, STATUS_INVALID,
                            "is a string with NUL or invalid UTF-8; wrap "
                            "binary data in moontide.bytes()");
        *value = db_text_value(text);
        return STATUS_OK;
    case INT64_CDATA:
        if (int64_read(L, index, &integer) != INT64_VALUE)
            break;
        *value = db_integer(integer);
        return STATUS_OK;
    default:
        break;
    }
    if (is_null(L, index)) {
        *value = db_null();
        return STATUS_OK;
    }
    if (native_kind(L, index) == NATIVE_BYTES) {
        native_push_value(L, index);
        text.data = lua_tolstring(L, -1, &text.len);
        *value = db_bytes(text);
        lua_pop(L, 1); /* the box keeps the string alive */
        return STATUS_OK;
    }
    value_describe(L, index, shown, sizeof(shown));
    return diag_set(diag, STATUS_INVALID,
                    "is %s; SQL takes nil, booleans, numbers, strings and "
                    "moontide.bytes()",
                    shown);
}

/* --- fields -------------------------------------------------------------- */

static enum status expected(lua_State *L, int index,
                            const struct declaration_field *field,
                            const char *what, struct diag *diag)
{
    char shown[2 * DESCRIBE_SIZE];

    value_describe(L, index, shown, sizeof(shown));
    return diag_set(diag, STATUS_INVALID, "field %s: expected %s, got %s",
                    field->name, what, shown);
}

static enum status integer_field(lua_State *L, int index,
                                 const struct declaration_field *field,
                                 struct db_value *value, struct diag *diag)
{
    int64_t integer;

    switch (int64_read(L, index, &integer)) {
    case INT64_VALUE:
        *value = db_integer(integer);
        return STATUS_OK;
    case INT64_RANGE:
        return expected(L, index, field,
                        "an integer that a number keeps exactly (to 2^53) or "
                        "an int64",
                        diag);
    default:
        return expected(L, index, field, "an integer", diag);
    }
}

/* The types that are text in the state. */
static enum status string_field(lua_State *L, int index,
                                const struct declaration_field *field,
                                struct arena *arena, struct db_value *value,
                                struct diag *diag)
{
    struct text text;
    const char *wants;

    text.data = lua_tolstring(L, index, &text.len);
    if (field->type == FIELD_TEXT && is_text(text) &&
        text_utf8_length(text) > TEXT_CHARS)
        return diag_set(diag, STATUS_INVALID,
                        "field %s: the text has %zu characters; a text "
                        "column takes %d",
                        field->name, text_utf8_length(text), TEXT_CHARS);
    if (field_value_from_text(field, text, arena, value, &wants))
        return STATUS_OK;
    if (field->type == FIELD_DECIMAL)
        return diag_set(diag, STATUS_INVALID,
                        "field %s: \"%.40s\" is no decimal(%d, %d)",
                        field->name, text.data, field->precision, field->scale);
    return expected(L, index, field, wants, diag);
}

/* What the type wants to see, for the message. */
static const char *wanted(const struct declaration_field *field,
                          struct arena *arena)
{
    switch (field->type) {
    case FIELD_INTEGER:
        return "an integer";
    case FIELD_DOUBLE:
        return "a number";
    case FIELD_BOOLEAN:
        return "a boolean";
    case FIELD_DECIMAL:
        return "a decimal as a string";
    case FIELD_BYTES:
        return "bytes as base64 text";
    case FIELD_ENUM:
        return field_value_words(field, arena);
    default:
        return "a string";
    }
}

enum status value_field(lua_State *L, int index,
                        const struct declaration_field *field,
                        struct arena *arena, struct db_value *value,
                        struct diag *diag)
{
    int type = lua_type(L, index);

    if (is_null(L, index)) {
        *value = db_null();
        if (field->optional)
            return STATUS_OK;
        return diag_set(diag, STATUS_INVALID,
                        "field %s: missing; expected %s (or declare it with "
                        "optional = true)",
                        field->name, wanted(field, arena));
    }
    switch (field->type) {
    case FIELD_INTEGER:
        return integer_field(L, index, field, value, diag);
    case FIELD_DOUBLE:
        if (type != LUA_TNUMBER || !isfinite(lua_tonumber(L, index)))
            break;
        *value = db_number(lua_tonumber(L, index));
        return STATUS_OK;
    case FIELD_BOOLEAN:
        if (type != LUA_TBOOLEAN)
            break;
        *value = db_boolean(lua_toboolean(L, index) != 0);
        return STATUS_OK;
    default:
        if (type != LUA_TSTRING)
            break;
        return string_field(L, index, field, arena, value, diag);
    }
    return expected(L, index, field, wanted(field, arena), diag);
}

/* --- results -------------------------------------------------------------- */

void value_push_column(lua_State *L, struct db_rows *rows, size_t column)
{
    char text[CLOCK_TEXT_SIZE], id[UUID_TEXT_LEN + 1];
    struct text bytes;
    struct uuid uuid;

    switch (db_column_type(rows, column)) {
    case DB_NULL:
        lua_pushnil(L);
        return;
    case DB_INT64:
        int64_push(L, db_get_int64(rows, column));
        return;
    case DB_DOUBLE:
        lua_pushnumber(L, db_get_double(rows, column));
        return;
    case DB_BOOL:
        lua_pushboolean(L, db_get_bool(rows, column));
        return;
    case DB_TIMESTAMP:
        clock_format(db_get_timestamp(rows, column), text);
        lua_pushstring(L, text);
        return;
    case DB_UUID:
        uuid = db_get_uuid(rows, column);
        uuid_format(&uuid, id);
        lua_pushstring(L, id);
        return;
    default:
        bytes = db_get_text(rows, column);
        lua_pushlstring(L, bytes.data != NULL ? bytes.data : "", bytes.len);
    }
}

bool value_revision(lua_State *L, int index, int *revision)
{
    lua_Number number = lua_tonumber(L, index);

    if (lua_type(L, index) != LUA_TNUMBER || !(number >= 0) ||
        number > INT32_MAX || number != (lua_Number)(int)number)
        return false;
    *revision = (int)number;
    return true;
}
