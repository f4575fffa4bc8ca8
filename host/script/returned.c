#include "script/returned.h"

#include "script/native.h"
#include "script/value.h"

#include <stdio.h>

const char *const returned_event_names[] = {
    "type",         "payload",  "id",          "key",
    "metadata",     "revision", "occurred_at", "aggregate_type",
    "aggregate_id", NULL};

bool returned_one(lua_State *L, int first, char *shown, size_t size)
{
    bool one = true;

    for (int i = first + 1; i <= lua_gettop(L); i++)
        one &= lua_isnil(L, i);
    lua_settop(L, first);
    if (!one)
        (void)snprintf(shown, size, "several values");
    return one;
}

/* What it returned is the value at `at`, or several. */
static int fail_with(lua_State *L, struct handler_job *job, int function,
                     int at, bool several, const char *rule)
{
    char where[LIMITS_TEXT_SIZE];
    char shown[128];

    if (several)
        (void)snprintf(shown, sizeof(shown), "several values");
    else
        value_describe(L, at, shown, sizeof(shown));
    handler_run_where(L, function, where, sizeof(where));
    failure_set(job->failure, false, "state",
                "%s: the function returned %s; %s", where, shown, rule);
    return handler_run_fail(job);
}

int returned_nothing(lua_State *L, struct handler_job *job, int function,
                     int first, const char *rule)
{
    int at = first;

    while (at <= lua_gettop(L) && lua_isnil(L, at))
        at++;
    if (at > lua_gettop(L))
        return 0;
    return fail_with(L, job, function, at, at > first, rule);
}

/* Something that another kind of handler returns to have it done. */
static bool is_wish(lua_State *L, int index)
{
    int top = lua_gettop(L);
    bool is = lua_type(L, index) == LUA_TUSERDATA ||
              native_kind(L, index) != NATIVE_NONE ||
              returned_is_event(L, index);

    if (!is && lua_istable(L, index)) {
        luaL_checkstack(L, 2, NULL);
        lua_rawgeti(L, index, 1);
        is = returned_is_event(L, top + 1);
        lua_settop(L, top);
    }
    return is;
}

int returned_by_ctx(lua_State *L, struct handler_job *job, int function,
                    int first, const char *rule)
{
    int top = lua_gettop(L);

    if (top < first)
        return 0;
    if (lua_isnil(L, first))
        return returned_nothing(L, job, function, first, rule);
    if (lua_toboolean(L, first) && !is_wish(L, first))
        return 0;
    return fail_with(L, job, function, first, top > first, rule);
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

const char *returned_stranger(lua_State *L, int index, const char *const *names)
{
    luaL_checkstack(L, 8, NULL);
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        bool named = lua_type(L, -2) == LUA_TSTRING;
        const char *name = named ? lua_tostring(L, -2) : NULL;
        const char *near;

        if (named && is_one_of(name, names)) {
            lua_pop(L, 1);
            continue;
        }
        near = named ? text_nearest(name, names) : NULL;
        lua_pushfstring(L, "\"%s\"%s%s%s", value_name(L, -2),
                        near != NULL ? " (did you mean \"" : "",
                        near != NULL ? near : "", near != NULL ? "\"?)" : "");
        return lua_tostring(L, -1);
    }
    return NULL;
}

bool returned_is_event(lua_State *L, int index)
{
    int top = lua_gettop(L);
    bool is;

    if (!lua_istable(L, index) || native_kind(L, index) != NATIVE_NONE)
        return false;
    luaL_checkstack(L, 4, NULL);
    lua_pushliteral(L, "type");
    lua_rawget(L, index);
    lua_pushliteral(L, "payload");
    lua_rawget(L, index);
    is = lua_type(L, -2) == LUA_TSTRING && !lua_isnil(L, -1) &&
         returned_stranger(L, index, returned_event_names) == NULL;
    lua_settop(L, top);
    return is;
}
