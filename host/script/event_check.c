#include "script/event_check.h"

#include "base/clock.h"
#include "script/json_codec.h"
#include "script/json_tags.h"
#include "script/lua_call.h"
#include "script/value.h"

#include <stdio.h>

#define PATH_SIZE 512

struct check {
    const struct event_type *type;
    struct text payload;
    struct arena arena; /* of values that are only looked at */
    struct buffer *json;
    char path[PATH_SIZE];
    enum status status;
    struct diag diag;
};

static bool refuse(lua_State *L, struct check *check, int index,
                   const char *wanted)
{
    char shown[128];

    if (lua_isnil(L, index)) {
        check->status = diag_set(&check->diag, STATUS_INVALID,
                                 "%s: missing; expected %s", check->path,
                                 wanted);
        return false;
    }
    value_describe(L, index, shown, sizeof(shown));
    if (lua_istable(L, index))
        (void)snprintf(shown, sizeof(shown), "%s",
                       json_tags_is_list(L, index) ? "a list" : "an object");
    check->status = diag_set(&check->diag, STATUS_INVALID,
                             "%s: expected %s, got %s", check->path, wanted,
                             shown);
    return false;
}

static bool check_value(lua_State *L, struct check *check, int index,
                        const struct declaration_field *field);

/* Appends to the path; gives the length it had. */
static size_t enter(struct check *check, const char *name, int item)
{
    size_t len = strlen(check->path);
    char *end = check->path + len;

    if (name != NULL)
        (void)snprintf(end, PATH_SIZE - len, ".%s", name);
    else
        (void)snprintf(end, PATH_SIZE - len, "[%d]", item);
    return len;
}

static bool is_null(lua_State *L, int index)
{
    return lua_isnil(L, index) ||
           (lua_islightuserdata(L, index) && lua_touserdata(L, index) == NULL);
}

/* Names the member that the record does not have, with the nearest it has. */
static bool check_names(lua_State *L, struct check *check, int index,
                        const struct declaration_field *fields, size_t count)
{
    const char **names = arena_alloc_zero(&check->arena,
                                          (count + 1) * sizeof(*names));

    for (size_t i = 0; i < count; i++)
        names[i] = fields[i].name;
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        struct text name;
        char shown[101];
        const char *near;
        bool known = false;

        name.data = lua_tolstring(L, -2, &name.len);
        for (size_t i = 0; !known && i < count; i++)
            known = text_equal(text_of(names[i]), name);
        lua_pop(L, 1);
        if (known)
            continue;
        text_clean(name, shown, sizeof(shown));
        near = text_nearest(shown, names);
        check->status = diag_set(
            &check->diag, STATUS_INVALID, "%s has no field %s%s%s%s",
            check->path, shown, near != NULL ? "; did you mean \"" : "",
            near != NULL ? near : "", near != NULL ? "\"?" : "");
        return false;
    }
    return true;
}

static bool check_record(lua_State *L, struct check *check, int index,
                         const struct declaration_field *fields, size_t count)
{
    if (!lua_istable(L, index))
        return refuse(L, check, index, "an object");
    if (lua_getmetatable(L, index) != 0) {
        bool array = lua_topointer(L, -1) == json_tags_get(L)->array;

        lua_pop(L, 1);
        if (array)
            return refuse(L, check, index, "an object");
    }
    if (!check_names(L, check, index, fields, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t len = enter(check, fields[i].name, 0);
        bool good;

        lua_pushstring(L, fields[i].name);
        lua_rawget(L, index);
        good = check_value(L, check, lua_gettop(L), &fields[i]);
        lua_pop(L, 1);
        if (!good)
            return false;
        check->path[len] = '\0';
    }
    return true;
}

/* Pushes what the value at the top is known by among the items of a set: a
 * string, number or boolean itself, anything else its JSON behind a byte that
 * no text begins with. */
static bool push_identity(lua_State *L, struct check *check)
{
    int type = lua_type(L, -1);
    enum status status;

    if (type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TBOOLEAN) {
        lua_pushvalue(L, -1);
        return true;
    }
    buffer_clear(check->json);
    buffer_append_char(check->json, '\xff');
    status = json_codec_encode(L, lua_gettop(L), "payload", check->json,
                               &check->diag);
    if (status != STATUS_OK) {
        check->status = status;
        return false;
    }
    lua_pushlstring(L, check->json->data, check->json->len);
    return true;
}

/* Whether the item at the top is in none of the items before, which the table
 * at `seen` has by their identity. */
static bool check_distinct(lua_State *L, struct check *check, int seen,
                           int item)
{
    if (!push_identity(L, check))
        return false;
    lua_pushvalue(L, -1);
    lua_rawget(L, seen);
    if (!lua_isnil(L, -1)) {
        check->status = diag_set(&check->diag, STATUS_INVALID,
                                 "%s is there as item %d already, and a set "
                                 "has each value once",
                                 check->path, (int)lua_tointeger(L, -1));
        lua_pop(L, 2);
        return false;
    }
    lua_pop(L, 1);
    lua_pushinteger(L, item);
    lua_rawset(L, seen);
    return true;
}

static bool check_list(lua_State *L, struct check *check, int index,
                       const struct declaration_field *field)
{
    bool array = lua_istable(L, index) && lua_getmetatable(L, index) != 0;
    int count, seen;

    if (array) {
        array = lua_topointer(L, -1) == json_tags_get(L)->array;
        lua_pop(L, 1);
    }
    if (!array)
        return refuse(L, check, index, "a list");
    count = (int)lua_objlen(L, index);
    lua_newtable(L); /* of a set's items */
    seen = lua_gettop(L);
    for (int i = 1; i <= count; i++) {
        size_t len = enter(check, NULL, i);
        bool good;

        lua_rawgeti(L, index, i);
        good = check_value(L, check, lua_gettop(L), field->inner) &&
               (field->type != FIELD_SET || check_distinct(L, check, seen, i));
        lua_pop(L, 1);
        if (!good)
            return false;
        check->path[len] = '\0';
    }
    lua_pop(L, 1);
    return true;
}

/* Without the seventh to ninth digit behind the point. */
static struct text to_microseconds(struct arena *arena, struct text text)
{
    char *kept = arena_alloc(arena, text.len + 1);
    size_t len = 0, digits = 0;
    bool behind = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '.')
            behind = true;
        else if (behind && (c < '0' || c > '9'))
            behind = false;
        else if (behind && ++digits > 6 && digits <= 9)
            continue;
        kept[len++] = c;
    }
    return (struct text){kept, len};
}

/* A payload is kept as it is given, so a time in it may be finer than one in a
 * column. */
static bool check_timestamp(lua_State *L, struct check *check, int index)
{
    int64_t us;

    if (lua_type(L, index) == LUA_TSTRING) {
        struct text text;

        text.data = lua_tolstring(L, index, &text.len);
        text = to_microseconds(&check->arena, text);
        if (clock_parse(text, &us, NULL) == STATUS_OK)
            return true;
    }
    return refuse(L, check, index,
                  "an RFC 3339 time, with at most nine digits behind the "
                  "point");
}

static bool check_value(lua_State *L, struct check *check, int index,
                        const struct declaration_field *field)
{
    struct declaration_field named = *field;
    struct db_value value;

    luaL_checkstack(L, 8, "the payload is nested too deeply");
    if (is_null(L, index) && field->optional)
        return true;
    switch (field->type) {
    case FIELD_RECORD:
        return check_record(L, check, index, field->inner, field->ninner);
    case FIELD_LIST:
    case FIELD_SET:
        return check_list(L, check, index, field);
    case FIELD_TEXT: /* of any length: it is in no column of its own */
        return lua_type(L, index) == LUA_TSTRING ||
               refuse(L, check, index, "text");
    case FIELD_TIMESTAMP:
        return check_timestamp(L, check, index);
    default:
        break;
    }
    named.name = check->path;
    check->status = value_field(L, index, &named, &check->arena, &value,
                                &check->diag);
    return check->status == STATUS_OK;
}

static int run_check(lua_State *L)
{
    struct check *check = lua_touserdata(L, 1);

    check->status = json_codec_decode(L, check->payload, "payload",
                                      &check->diag);
    if (check->status == STATUS_OK)
        check_record(L, check, lua_gettop(L), check->type->fields,
                     check->type->nfields);
    return 0;
}

enum status event_check(struct script_state *state,
                        const struct event_types *types,
                        struct append_event *event, struct diag *diag)
{
    const struct event_type *type = event_types_find(types, event->type);
    struct buffer json = BUFFER_EMPTY;
    struct check check = {
        .type = type,
        .payload = event->payload,
        .json = &json,
    };
    struct lua_failure failure;
    enum lua_outcome outcome;

    if (type == NULL)
        return STATUS_OK;
    if (!event->has_revision) {
        event->revision = type->revision;
        event->has_revision = true;
    }
    if (!type->has_fields || event->revision != type->revision)
        return STATUS_OK;
    (void)snprintf(check.path, sizeof(check.path), "payload");
    outcome = lua_call_run(state, run_check, &check, &failure);
    arena_free(&check.arena);
    buffer_free(&json);
    if (outcome != LUA_CALL_OK)
        return diag_set(diag, STATUS_INVALID, "payload: %s", failure.message);
    if (check.status != STATUS_OK)
        return diag_set(diag, STATUS_INVALID,
                        "%s; event type \"%s\" (%s:%d) says what it is",
                        check.diag.message, type->name, type->file, type->line);
    return STATUS_OK;
}
