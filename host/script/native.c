#include "script/native.h"

#include "base/clock.h"
#include "script/int64.h"
#include "script/json_codec.h"
#include "script/lua_call.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Addresses that name the metatables in the registry. */
static const char DELETE_KEY, ADD_KEY, BYTES_KEY, SPLIT_KEY, REJECT_KEY;

static void push_metatable(lua_State *L, const char *key)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

static int value_tostring(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

static void make_metatable(lua_State *L, const char *key, const char *name)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)key);
    lua_createtable(L, 0, 2);
    lua_pushstring(L, name);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__metatable");
    lua_pushcclosure(L, value_tostring, 1);
    lua_setfield(L, -2, "__tostring");
    lua_rawset(L, LUA_REGISTRYINDEX);
}

/* The function's upvalue is the metatable. */
static void push_boxed(lua_State *L)
{
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setmetatable(L, -2);
}

/* add(number) -> a value for ctx:upsert */
static int native_add(lua_State *L)
{
    int64_t integer;

    luaL_checkany(L, 1);
    if (lua_type(L, 1) == LUA_TNUMBER) {
        if (!isfinite(lua_tonumber(L, 1)))
            return luaL_argerror(L, 1, "a finite number expected");
    } else if (int64_read(L, 1, &integer) != INT64_VALUE) {
        return luaL_typerror(L, 1, "number");
    }
    push_boxed(L);
    return 1;
}

/* bytes(string) -> a binary SQL parameter */
static int native_bytes(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TSTRING);
    push_boxed(L);
    return 1;
}

/* split(list of events) -> what a step of upcast returns for several events */
static int native_split(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    push_boxed(L);
    return 1;
}

/* reject(reason, details) -> what a command returns that is refused */
static int native_reject(lua_State *L)
{
    struct text reason;

    if (lua_type(L, 1) != LUA_TSTRING || lua_objlen(L, 1) == 0)
        return luaL_error(L,
                          "moontide.reject takes a reason first, text for a "
                          "person, not %s",
                          lua_type(L, 1) == LUA_TSTRING ? "an empty one"
                                                        : luaL_typename(L, 1));
    reason.data = lua_tolstring(L, 1, &reason.len);
    if (!text_utf8_valid(reason) ||
        memchr(reason.data, '\0', reason.len) != NULL ||
        text_utf8_length(reason) > NATIVE_REASON_CHARS)
        return luaL_error(L,
                          "moontide.reject: a reason is UTF-8 without NUL, at "
                          "most %d characters; longer ones and data go into "
                          "the details",
                          NATIVE_REASON_CHARS);
    lua_settop(L, 2);
    push_boxed(L);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, 2);
    return 1;
}

/* where(level) -> file, line that runs; where(function) -> file, line where it
 * starts; nothing for a C function */
static int native_where(lua_State *L)
{
    lua_Debug frame;
    int line;

    if (lua_isfunction(L, 1)) {
        lua_pushvalue(L, 1);
        lua_getinfo(L, ">S", &frame);
        line = frame.linedefined;
    } else {
        int level = (int)luaL_checkinteger(L, 1);

        if (lua_getstack(L, level, &frame) == 0 ||
            lua_getinfo(L, "Sl", &frame) == 0)
            return 0;
        line = frame.currentline;
    }
    if (line <= 0)
        return 0;
    lua_pushstring(L,
                   *frame.source == '@' ? frame.source + 1 : frame.short_src);
    lua_pushinteger(L, line);
    return 2;
}

/* nearest(word, list) -> the most similar word, or nil */
static int native_nearest(lua_State *L)
{
    const char *words[64];
    const char *word = luaL_checkstring(L, 1);
    size_t count;

    luaL_checktype(L, 2, LUA_TTABLE);
    count = lua_objlen(L, 2);
    luaL_argcheck(L, count < sizeof(words) / sizeof(words[0]), 2, "too long");
    luaL_checkstack(L, (int)count + 4, NULL);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (int)i + 1);
        words[i] = luaL_checkstring(L, -1);
    }
    words[count] = NULL;
    lua_pushstring(L, text_nearest(word, words)); /* nil for NULL */
    return 1;
}

/* characters(string) -> number of characters; nil when it is no UTF-8 */
static int native_characters(lua_State *L)
{
    struct text text;

    text.data = luaL_checklstring(L, 1, &text.len);
    if (!text_utf8_valid(text))
        return 0;
    lua_pushinteger(L, (lua_Integer)text_utf8_length(text));
    return 1;
}

/* timestamp(text) -> the same instant in UTC; nil, why */
static int native_timestamp(lua_State *L)
{
    char out[CLOCK_TEXT_SIZE];
    struct diag diag;
    struct text text;
    int64_t us;

    text.data = luaL_checklstring(L, 1, &text.len);
    if (clock_parse(text, &us, &diag) != STATUS_OK) {
        lua_pushnil(L);
        lua_pushstring(L, diag.message);
        return 2;
    }
    clock_format(us, out);
    lua_pushstring(L, out);
    return 1;
}

/* duration(text) -> microseconds; nil when it is none */
static int native_duration(lua_State *L)
{
    struct text text;
    int64_t us;

    text.data = luaL_checklstring(L, 1, &text.len);
    if (clock_parse_duration(text, &us, NULL) != STATUS_OK)
        return 0;
    lua_pushnumber(L, (lua_Number)us);
    return 1;
}

static const luaL_Reg FUNCTIONS[] = {
    {"array", json_codec_array},
    {"object", json_codec_object},
    {"json_decode", json_codec_lua_decode},
    {"json_encode", json_codec_lua_encode},
    {"where", native_where},
    {"nearest", native_nearest},
    {"characters", native_characters},
    {"timestamp", native_timestamp},
    {"duration", native_duration},
    {NULL, NULL},
};

void native_open(lua_State *L, bool sandboxed)
{
    json_codec_register(L);
    make_metatable(L, &DELETE_KEY, "moontide.delete");
    make_metatable(L, &ADD_KEY, "moontide.add");
    make_metatable(L, &BYTES_KEY, "moontide.bytes");
    make_metatable(L, &SPLIT_KEY, "moontide.split");
    make_metatable(L, &REJECT_KEY, "moontide.reject");
    for (const luaL_Reg *f = FUNCTIONS; f->name != NULL; f++) {
        lua_pushcfunction(L, f->func);
        lua_setfield(L, -2, f->name);
    }
    push_metatable(L, &ADD_KEY);
    lua_pushcclosure(L, native_add, 1);
    lua_setfield(L, -2, "add");
    push_metatable(L, &BYTES_KEY);
    lua_pushcclosure(L, native_bytes, 1);
    lua_setfield(L, -2, "bytes");
    push_metatable(L, &SPLIT_KEY);
    lua_pushcclosure(L, native_split, 1);
    lua_setfield(L, -2, "split");
    push_metatable(L, &REJECT_KEY);
    lua_pushcclosure(L, native_reject, 1);
    lua_setfield(L, -2, "reject");
    if (sandboxed) {
        /* its errors are known to script/lua_call.c */
        lua_pushcfunction(L, lua_call_permanent);
        lua_setfield(L, -2, "permanent");
    }
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_newuserdata(L, 1);
    push_metatable(L, &DELETE_KEY);
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "delete");
}

static bool is_metatable(lua_State *L, const char *key)
{
    bool same;

    push_metatable(L, key);
    same = lua_rawequal(L, -1, -2) != 0;
    lua_pop(L, 1);
    return same;
}

enum native_kind native_kind(lua_State *L, int index)
{
    enum native_kind kind = NATIVE_NONE;
    int type = lua_type(L, index);

    if ((type != LUA_TTABLE && type != LUA_TUSERDATA) ||
        lua_getmetatable(L, index) == 0)
        return NATIVE_NONE;
    if (is_metatable(L, &ADD_KEY))
        kind = NATIVE_ADD;
    else if (is_metatable(L, &BYTES_KEY))
        kind = NATIVE_BYTES;
    else if (is_metatable(L, &SPLIT_KEY))
        kind = NATIVE_SPLIT;
    else if (is_metatable(L, &REJECT_KEY))
        kind = NATIVE_REJECT;
    else if (is_metatable(L, &DELETE_KEY))
        kind = NATIVE_DELETE;
    lua_pop(L, 1);
    return kind;
}

void native_push_value(lua_State *L, int index)
{
    lua_rawgeti(L, index, 1);
}
