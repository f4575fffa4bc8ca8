#include "script/upcast.h"

#include "script/int64.h"
#include "script/json_codec.h"
#include "script/lua_call.h"
#include "script/native.h"
#include "script/returned.h"
#include "script/value.h"

#include <stdio.h>
#include <string.h>

/* Of splits inside of splits: what is deeper runs in a circle. */
#define DEPTH_MAX 16

static int refuse(lua_State *L, const struct event_type *type, int revision,
                  const char *what)
{
    return luaL_error(L, "%s:%d: event type \"%s\": upcast[%d] %s", type->file,
                      type->line, type->name, revision - 1, what);
}

/* A boolean is what a comparison or a failed `and` has left there. */
static bool is_payload(lua_State *L)
{
    int64_t integer;

    switch (lua_type(L, -1)) {
    case LUA_TTABLE: {
        enum native_kind kind = native_kind(L, lua_gettop(L));

        return kind == NATIVE_NONE || kind == NATIVE_SPLIT;
    }
    case LUA_TSTRING:
    case LUA_TNUMBER:
        return true;
    case LUA_TLIGHTUSERDATA:
        return lua_touserdata(L, -1) == NULL;
    default:
        return int64_read(L, lua_gettop(L), &integer) == INT64_VALUE;
    }
}

/* What the value at the top is, pushed. */
static const char *shown(lua_State *L)
{
    char text[128];

    value_describe(L, -1, text, sizeof(text));
    lua_pushstring(L, text);
    return lua_tostring(L, -1);
}

static bool may_become(const struct event_type *type, struct text name)
{
    for (size_t i = 0; i < type->ninto; i++)
        if (text_equal(type->into[i], name))
            return true;
    return text_equal(text_of(type->name), name);
}

static bool has_field(const struct event_type *type, const char *name)
{
    for (size_t i = 0; i < type->nfields; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return true;
    return false;
}

/* Whether the value at the top is an event that the step's own could be split
 * into, or begins a list of them: no payload looks like that by chance, unless
 * it is declared so. */
static bool is_part(lua_State *L, const struct event_type *type)
{
    int top = lua_gettop(L);
    bool is = false;
    struct text name;

    if (!lua_istable(L, top) || native_kind(L, top) != NATIVE_NONE)
        return false;
    lua_rawgeti(L, top, 1);
    if (lua_isnil(L, -1))
        lua_pop(L, 1);
    if (returned_is_event(L, lua_gettop(L))) {
        lua_getfield(L, -1, "type");
        name.data = lua_tolstring(L, -1, &name.len);
        is = may_become(type, name) && !has_field(type, "payload");
    }
    lua_settop(L, top);
    return is;
}

/* Replaces the payload at the top by what one step makes of it. */
static void run_step(struct handler_code *code, lua_State *L,
                     const struct event_type *type, int revision)
{
    int step = code->set->steps[type->index][revision - type->oldest];
    int first = lua_gettop(L) + 1;
    char several[32];
    bool one;

    lua_rawgeti(L, LUA_REGISTRYINDEX, step);
    lua_pushvalue(L, -2);
    lua_call(L, 1, LUA_MULTRET);
    one = returned_one(L, first, several, sizeof(several));
    if (one && lua_isnil(L, -1)) {
        lua_pop(L, 1); /* it has changed the payload in place */
        return;
    }
    if (!one || !is_payload(L))
        refuse(L, type, revision + 1,
               lua_pushfstring(L,
                               "returned %s; change the payload and return "
                               "nothing, or return another one",
                               one ? shown(L) : several));
    if (!lua_rawequal(L, -1, -2) && is_part(L, type))
        refuse(L, type, revision + 1,
               "returned what moontide.event makes, which would be taken as "
               "the payload; return the payload alone, or "
               "moontide.split { moontide.event(...) }");
    lua_remove(L, -2);
}

/* Runs the steps up to the newest revision, or until one splits the event.
 * Gives the revision that was reached. */
static int run_steps(struct handler_code *code, lua_State *L,
                     const struct event_type *type, int revision, bool *split)
{
    *split = false;
    while (revision < type->revision && !*split) {
        run_step(code, L, type, revision++);
        *split = native_kind(L, lua_gettop(L)) == NATIVE_SPLIT;
    }
    return revision;
}

void upcast_payload(struct handler_code *code, lua_State *L,
                    const struct event_type *type, int revision)
{
    bool split;

    luaL_checkstack(L, 4, NULL);
    revision = run_steps(code, L, type, revision, &split);
    if (split)
        refuse(L, type, revision,
               "splits the event; name the types of its parts, as in into = { "
               "\"a.Type\" }");
}

/* Appends the part whose payload is at the top, which is popped. */
static void add_part(lua_State *L, int parts, struct text name, int revision)
{
    lua_createtable(L, 0, 3);
    lua_insert(L, -2);
    lua_setfield(L, -2, "payload");
    lua_pushlstring(L, name.data, name.len);
    lua_setfield(L, -2, "type");
    lua_pushinteger(L, revision);
    lua_setfield(L, -2, "revision");
    lua_rawseti(L, parts, (int)lua_objlen(L, parts) + 1);
}

/* What moontide.split was given as one part, at the top of the stack. */
struct part {
    struct text name;
    int revision;
};

static const char *const part_names[] = {"type", "payload", "revision", NULL};

/* A part that the script itself makes newer than it knows is as one that is
 * stored so: it waits for a script that knows it. */
static void refuse_revision(struct handler_code *code, lua_State *L,
                            const struct event_type *type, int revision)
{
    struct failure failure;
    struct diag diag;
    const char *text;

    event_type_refuse(type, revision, "comes out of a split", &failure);
    text = strchr(failure.reason, ':');
    (void)snprintf(code->fault.class, sizeof(code->fault.class), "%.*s",
                   (int)(text - failure.reason), failure.reason);
    code->fault.waits = failure.waits;
    diag_set(&diag, STATUS_PERMANENT, "%s", text + 2);
    lua_call_raise_host(L, &diag);
}

/* Replaces the part at the top by its payload. */
static struct part take_part(struct handler_code *code, lua_State *L,
                             const struct event_type *from, int reached)
{
    const struct event_type *type;
    struct part part = {.revision = 0};
    int at = lua_gettop(L);
    const char *stranger;

    if (!lua_istable(L, at))
        refuse(L, from, reached,
               "splits the event into something else than a list of "
               "moontide.event(type, payload)");
    stranger = returned_stranger(L, at, part_names);
    if (stranger != NULL)
        refuse(L, from, reached,
               lua_pushfstring(L,
                               "gives a part with %s; a part has type, payload "
                               "and revision, and all else of the stored event",
                               stranger));
    lua_getfield(L, at, "type");
    if (lua_type(L, -1) != LUA_TSTRING)
        refuse(L, from, reached, "gives a part without a type");
    part.name.data = lua_tolstring(L, -1, &part.name.len);
    if (!may_become(from, part.name))
        refuse(L, from, reached,
               lua_pushfstring(L,
                               "gives a part of type \"%s\", which is not in "
                               "its `into`",
                               part.name.data));
    type = event_types_find(&code->set->event_types, part.name);
    if (type == from)
        part.revision = reached;
    else if (type != NULL)
        part.revision = type->revision;
    lua_getfield(L, at, "revision");
    if (!lua_isnil(L, -1) && !value_revision(L, -1, &part.revision))
        refuse(L, from, reached,
               "gives a part whose revision is no whole number from 0");
    if (type == from && part.revision < reached)
        refuse(L, from, reached,
               "gives a part of its own type with an older revision");
    lua_getfield(L, at, "payload");
    if (lua_isnil(L, -1)) {
        lua_newtable(L);
        lua_replace(L, -2);
    }
    /* the name lives as long as the part's table, which the list holds */
    lua_replace(L, at);
    lua_settop(L, at);
    return part;
}

static void expand(struct handler_code *code, lua_State *L, int parts,
                   struct part part, int depth)
{
    const struct event_type *type = event_types_find(&code->set->event_types,
                                                     part.name);
    bool split = false;
    int list;

    luaL_checkstack(L, 12, "too many splits");
    if (type != NULL) {
        enum event_age age = event_type_age(type, part.revision);

        if (age == EVENT_NEWER || age == EVENT_UNKNOWN)
            refuse_revision(code, L, type, part.revision);
        part.revision = run_steps(code, L, type, part.revision, &split);
    }
    if (!split) {
        add_part(L, parts, part.name, part.revision);
        return;
    }
    if (depth >= DEPTH_MAX)
        refuse(L, type, part.revision, "splits in a circle");
    native_push_value(L, lua_gettop(L));
    list = lua_gettop(L);
    for (int i = 1; i <= (int)lua_objlen(L, list); i++) {
        struct part inner;

        lua_rawgeti(L, list, i);
        inner = take_part(code, L, type, part.revision);
        expand(code, L, parts, inner, depth + 1);
    }
    lua_settop(L, list - 2); /* the list and its box */
}

void upcast_parts(struct handler_code *code, lua_State *L,
                  const struct event_type *type, int revision)
{
    const struct part part = {text_of(type->name), revision};
    int payload = lua_gettop(L);

    lua_newtable(L);
    lua_insert(L, payload);
    expand(code, L, payload, part, 0);
}
