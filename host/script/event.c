#include "script/event.h"

#include "base/clock.h"
#include "script/int64.h"
#include "script/json_codec.h"
#include "script/upcast.h"
#include "script/value.h"

#include <stdlib.h>

enum field {
    FIELD_UNKNOWN,
    EVENT_ID,
    EVENT_TYPE,
    EVENT_REVISION,
    EVENT_PAYLOAD,
    EVENT_METADATA,
    EVENT_POSITION,
    EVENT_TOPIC,
    EVENT_KEY,
    EVENT_OCCURRED_AT,
    EVENT_AGGREGATE_TYPE,
    EVENT_AGGREGATE_ID,
    EVENT_SEQUENCE,
    EVENT_PART,
    EVENT_COPY, /* the method */
    EVENT_COUNT
};

static const char *const NAMES[EVENT_COUNT + 1] = {
    [FIELD_UNKNOWN] = "",
    [EVENT_ID] = "id",
    [EVENT_TYPE] = "type",
    [EVENT_REVISION] = "revision",
    [EVENT_PAYLOAD] = "payload",
    [EVENT_METADATA] = "metadata",
    [EVENT_POSITION] = "position",
    [EVENT_TOPIC] = "topic",
    [EVENT_KEY] = "key",
    [EVENT_OCCURRED_AT] = "occurred_at",
    [EVENT_AGGREGATE_TYPE] = "aggregate_type",
    [EVENT_AGGREGATE_ID] = "aggregate_id",
    [EVENT_SEQUENCE] = "sequence",
    [EVENT_PART] = "part",
    [EVENT_COPY] = "copy",
    [EVENT_COUNT] = NULL,
};

/* Upvalues of event_index. */
enum { UP_CODE = 1, UP_FIELDS, UP_COPY };

static void push_text(lua_State *L, struct text text)
{
    if (text.data == NULL)
        lua_pushnil(L);
    else
        lua_pushlstring(L, text.data, text.len);
}

/* A message that cannot be read is the message's fault, not the handler's:
 * the note makes it so in the failure. */
static void push_json(struct handler_code *code, lua_State *L, struct text json,
                      const char *root)
{
    struct diag diag;

    if (json.data == NULL) {
        lua_pushnil(L);
    } else if (json_codec_decode(L, json, root, &diag) != STATUS_OK) {
        code->decode_failed = true;
        luaL_error(L,
                   "%s; only a handler that does not look at event.%s can "
                   "handle this event",
                   diag.message, root);
    }
}

static void push_field(struct handler_code *code, lua_State *L,
                       enum field field)
{
    const struct message *m = code->call->message;
    char id[UUID_TEXT_LEN + 1], time[CLOCK_TEXT_SIZE];

    switch (field) {
    case EVENT_ID:
        uuid_format(&m->id, id);
        lua_pushlstring(L, id, UUID_TEXT_LEN);
        return;
    case EVENT_TYPE:
        push_text(L, m->type);
        return;
    case EVENT_REVISION:
        lua_pushnumber(L, code->older != NULL ? code->older->revision
                                              : m->revision);
        return;
    case EVENT_PAYLOAD:
        push_json(code, L, m->payload, "payload");
        if (code->older != NULL)
            upcast_payload(code, L, code->older, m->revision);
        return;
    case EVENT_METADATA:
        push_json(code, L, m->metadata, "metadata");
        return;
    case EVENT_POSITION:
        int64_push(L, m->position);
        return;
    case EVENT_TOPIC:
        lua_pushstring(L, code->call->declaration->source);
        return;
    case EVENT_KEY:
        push_text(L, m->key);
        return;
    case EVENT_OCCURRED_AT:
        clock_format(m->occurred_at, time);
        lua_pushstring(L, time);
        return;
    case EVENT_AGGREGATE_TYPE:
        push_text(L, m->aggregate_type);
        return;
    case EVENT_AGGREGATE_ID:
        push_text(L, m->aggregate_id);
        return;
    case EVENT_SEQUENCE:
        if (m->aggregate_id.data == NULL)
            lua_pushnil(L);
        else
            int64_push(L, m->sequence);
        return;
    case EVENT_PART: /* one that is split has its own, see handler_parts.c */
        lua_pushinteger(L, 1);
        return;
    default:
        lua_pushnil(L);
    }
}

static struct handler_code *check_live(lua_State *L, int event)
{
    struct handler_code *code = lua_touserdata(L, lua_upvalueindex(UP_CODE));

    if (code->call == NULL || lua_topointer(L, event) != code->event)
        luaL_error(L, "an event is only readable inside its handler; take "
                      "event:copy() there to keep it");
    return code;
}

static int unknown_field(lua_State *L)
{
    const char *key = value_name(L, 2);
    const char *near = text_nearest(key, NAMES + 1);

    if (near != NULL)
        return luaL_error(L,
                          "an event has no field \"%s\"; did you mean "
                          "\"%s\"?",
                          key, near);
    return luaL_error(L, "an event has no field \"%s\"", key);
}

/* __index(event, key): makes the field and keeps it in the table. */
static int event_index(lua_State *L)
{
    struct handler_code *code;
    enum field field;

    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(UP_FIELDS));
    field = (enum field)lua_tointeger(L, 3);
    if (field == FIELD_UNKNOWN)
        return unknown_field(L);
    if (field == EVENT_COPY) {
        lua_pushvalue(L, lua_upvalueindex(UP_COPY));
        return 1;
    }
    code = check_live(L, 1);
    push_field(code, L, field);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

/* event:copy() -> a plain table with every field */
static int event_copy(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_createtable(L, 0, EVENT_COPY - 1);
    for (int field = EVENT_ID; field < EVENT_COPY; field++) {
        lua_pushstring(L, NAMES[field]);
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            push_field(check_live(L, 1), L, (enum field)field);
        }
        lua_rawset(L, 2);
    }
    return 1;
}

void event_register(struct handler_code *code, lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushlightuserdata(L, code);
    lua_createtable(L, 0, EVENT_COUNT);
    for (int field = EVENT_ID; field < EVENT_COUNT; field++) {
        lua_pushinteger(L, field);
        lua_setfield(L, -2, NAMES[field]);
    }
    lua_pushlightuserdata(L, code);
    lua_pushcclosure(L, event_copy, 1);
    lua_pushcclosure(L, event_index, 3);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "moontide.event");
    lua_setfield(L, -2, "__metatable");
    code->event_metatable = luaL_ref(L, LUA_REGISTRYINDEX);
}

void event_push(struct handler_code *code, lua_State *L)
{
    lua_createtable(L, 0, 4);
    lua_rawgeti(L, LUA_REGISTRYINDEX, code->event_metatable);
    lua_setmetatable(L, -2);
    code->event = lua_topointer(L, -1);
}
