#include "script/json_tags.h"

/* Addresses that name entries of the registry. */
static const char TAGS_KEY, ARRAY_KEY, OBJECT_KEY;

static int free_tags(lua_State *L)
{
    struct json_tags *tags = lua_touserdata(L, 1);

    buffer_free(&tags->scratch);
    table_set_free(&tags->seen);
    return 0;
}

/* The name stands where scripts would find the metatable, which they could
 * otherwise change for all arrays. */
static const void *make_metatable(lua_State *L, const char *key,
                                  const char *name)
{
    const void *address;

    lua_pushlightuserdata(L, (void *)key);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    address = lua_topointer(L, -1);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return address;
}

void json_tags_register(lua_State *L)
{
    struct json_tags *tags;

    lua_pushlightuserdata(L, (void *)&TAGS_KEY);
    tags = lua_newuserdata(L, sizeof(*tags));
    *tags = (struct json_tags){.scratch = BUFFER_EMPTY};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_tags);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    tags->array = make_metatable(L, &ARRAY_KEY, "moontide.array");
    tags->object = make_metatable(L, &OBJECT_KEY, "moontide.object");
}

struct json_tags *json_tags_get(lua_State *L)
{
    struct json_tags *tags;

    lua_pushlightuserdata(L, (void *)&TAGS_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    tags = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return tags;
}

bool json_tags_is_list(lua_State *L, int index)
{
    const struct json_tags *tags = json_tags_get(L);
    const void *tag = NULL;
    bool list;

    lua_pushvalue(L, index);
    if (lua_getmetatable(L, -1) != 0) {
        tag = lua_topointer(L, -1);
        lua_pop(L, 1);
    }
    lua_rawgeti(L, -1, 1);
    list = tag == tags->array || (tag != tags->object && !lua_isnil(L, -1));
    lua_pop(L, 2);
    return list;
}

void json_tags_push_array(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&ARRAY_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

void json_tags_push_object(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&OBJECT_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
}
