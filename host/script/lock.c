#include "script/lock.h"

#include <lauxlib.h>
#include <stdint.h>

static const char LOCKED_KEY; /* its address marks metatables of locks */

static int refuse_change(lua_State *L)
{
    const char *table = lua_tostring(L, lua_upvalueindex(1));

    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "%s is read-only", table);
    return luaL_error(L, "%s.%s cannot be assigned: the library is read-only",
                      table, lua_tostring(L, 2));
}

static int refuse_global(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "assignment to a global");
    return luaL_error(L, "assignment to global '%s' (declare it with local)",
                      lua_tostring(L, 2));
}

/* (real, refuse) on the top becomes the lock. */
static void lock(lua_State *L)
{
    lua_newtable(L); /* real, refuse, proxy */
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, -4);
    lua_setfield(L, -2, "__index");
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pushlightuserdata(L, (void *)(uintptr_t)&LOCKED_KEY);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    lua_setmetatable(L, -2);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

void lock_library(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_pushcclosure(L, refuse_change, 1);
    lock(L);
}

void lock_globals(lua_State *L)
{
    lua_pushcfunction(L, refuse_global);
    lock(L);
}

bool lock_push_real(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TTABLE || lua_getmetatable(L, index) == 0)
        return false;
    lua_pushlightuserdata(L, (void *)(uintptr_t)&LOCKED_KEY);
    lua_rawget(L, -2);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 2);
        return false;
    }
    lua_pop(L, 1);
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    return true;
}
