#include "script/int64.h"

#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Addresses that name entries of the registry. */
static const char MAKER_KEY, READER_KEY, FFI_KEY;

/* The LL suffix makes LuaJIT load its ffi library by itself; nothing but the
 * arithmetic of cdata is used of it. */
static const char HELPERS[] =
    "local tostring = tostring\n"
    "return function(high, low) return high * 4294967296LL + low end,\n"
    "       function(value) return tostring(value) end\n";

/* Stores the value at the top under a key that scripts cannot name. */
static void keep(lua_State *L, const char *key)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_insert(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

void int64_register(lua_State *L)
{
    bool had_ffi;

    luaL_findtable(L, LUA_REGISTRYINDEX, "_LOADED", 8);
    lua_getfield(L, -1, "ffi");
    had_ffi = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (luaL_loadbuffer(L, HELPERS, sizeof(HELPERS) - 1, "=int64") != 0)
        lua_error(L);
    lua_call(L, 0, 2);
    keep(L, &READER_KEY);
    keep(L, &MAKER_KEY);
    /* The library must stay alive: LuaJIT keeps unguarded pointers to it. */
    lua_getfield(L, -1, "ffi");
    keep(L, &FFI_KEY);
    if (!had_ffi) {
        lua_pushnil(L);
        lua_setfield(L, -2, "ffi");
    }
    lua_pop(L, 1);
}

void int64_push(lua_State *L, int64_t value)
{
    if (value <= INT64_EXACT && value >= -INT64_EXACT) {
        lua_pushnumber(L, (lua_Number)value);
        return;
    }
    lua_pushlightuserdata(L, (void *)&MAKER_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    /* an arithmetic shift: high is rounded towards minus infinity */
    lua_pushnumber(L, (lua_Number)(value >> 32));
    lua_pushnumber(L, (lua_Number)(value & INT64_C(0xffffffff)));
    lua_call(L, 2, 1);
}

/* tostring gives "123LL" or "123ULL" for integers and nothing of the kind for
 * any other cdata. */
static enum int64_kind read_cdata(lua_State *L, int index, int64_t *value)
{
    enum int64_kind kind = INT64_NOT;
    const char *text;
    char *end;

    lua_pushvalue(L, index);
    lua_pushlightuserdata(L, (void *)&READER_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    errno = 0;
    if (*text == '-' || (*text >= '0' && *text <= '9')) {
        long long number = strtoll(text, &end, 10);

        if (strcmp(end, "LL") == 0 || strcmp(end, "ULL") == 0) {
            kind = errno == 0 ? INT64_VALUE : INT64_RANGE;
            *value = number;
        }
    }
    lua_pop(L, 1);
    return kind;
}

enum int64_kind int64_read(lua_State *L, int index, int64_t *value)
{
    lua_Number number;

    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        number = lua_tonumber(L, index);
        if (number != floor(number) || isinf(number))
            return INT64_NOT;
        if (number > (lua_Number)INT64_EXACT ||
            number < -(lua_Number)INT64_EXACT)
            return INT64_RANGE;
        *value = (int64_t)number;
        return INT64_VALUE;
    case INT64_CDATA:
        return read_cdata(L, index, value);
    default:
        return INT64_NOT;
    }
}
