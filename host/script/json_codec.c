#include "script/json_codec.h"

#include "script/int64.h"
#include "script/json_tags.h"

#include <lauxlib.h>

void json_codec_register(lua_State *L)
{
    int64_register(L);
    json_tags_register(L);
}

/* The table at index 1, or a new one there. */
static void take_table(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
        return;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
}

int json_codec_array(lua_State *L)
{
    take_table(L);
    json_tags_push_array(L);
    lua_setmetatable(L, 1);
    return 1;
}

int json_codec_object(lua_State *L)
{
    take_table(L);
    json_tags_push_object(L);
    lua_setmetatable(L, 1);
    return 1;
}

static int raise(lua_State *L, const struct diag *diag)
{
    luaL_where(L, 1);
    lua_pushstring(L, diag->message);
    lua_concat(L, 2);
    return lua_error(L);
}

int json_codec_lua_decode(lua_State *L)
{
    struct diag diag;
    struct text json;

    json.data = luaL_checklstring(L, 1, &json.len);
    if (json_codec_decode(L, json, "value", &diag) != STATUS_OK)
        return raise(L, &diag);
    return 1;
}

int json_codec_lua_encode(lua_State *L)
{
    struct buffer *scratch = &json_tags_get(L)->scratch;
    struct diag diag;

    luaL_checkany(L, 1);
    buffer_clear(scratch);
    if (json_codec_encode(L, 1, "value", scratch, &diag) != STATUS_OK)
        return raise(L, &diag);
    lua_pushlstring(L, scratch->data, scratch->len);
    return 1;
}
