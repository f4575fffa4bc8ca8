#include "script/guarded.h"

#include "script/lock.h"
#include "script/lua_call.h"

#include <math.h>
#include <string.h>

#define REP_MAX (INT32_MAX / 2) /* bytes a string.rep may make */

int guarded_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    if (lock_push_real(L, 1))
        lua_replace(L, 1);
    lua_rawget(L, 1);
    return 1;
}

int guarded_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    if (lock_push_real(L, 1))
        return luaL_error(L, "rawset: this table is read-only");
    lua_rawset(L, 1);
    return 1;
}

/* print(...): one line of the log, with where it was called. */
int guarded_print(lua_State *L)
{
    const struct script_state *state = script_state_of(L);
    char where[LIMITS_TEXT_SIZE];
    char line[DIAG_MESSAGE_SIZE];
    int count = lua_gettop(L);
    luaL_Buffer buffer;
    struct text text;

    limits_check_stack(L);
    lua_getfield(L, lua_upvalueindex(1), "tostring");
    luaL_buffinit(L, &buffer);
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, count + 1);
        lua_pushvalue(L, i);
        lua_call(L, 1, 1);
        if (lua_tostring(L, -1) == NULL)
            return luaL_error(L, "'tostring' must return a string to 'print'");
        if (i > 1) {
            lua_pushliteral(L, "\t");
            lua_insert(L, -2);
            lua_concat(L, 2);
        }
        luaL_addvalue(&buffer);
    }
    luaL_pushresult(&buffer);
    text.data = lua_tolstring(L, -1, &text.len);
    if (state->log == NULL)
        return 0;
    lua_call_where(L, where);
    text_clean(text, line, sizeof(line));
    log_write(state->log, LOG_INFO, &(struct log_about){.every = true},
              "%s: %s", where, line);
    return 0;
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

/* xoshiro256**, as a double in [0, 1). */
static double random_next(uint64_t s[4])
{
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return (double)(result >> 11) * 0x1p-53;
}

int guarded_random(lua_State *L)
{
    double r = random_next(script_state_of(L)->random);
    lua_Number low = 1;
    lua_Number high;

    if (lua_gettop(L) == 0) {
        lua_pushnumber(L, r);
        return 1;
    }
    if (lua_gettop(L) == 1) {
        high = luaL_checknumber(L, 1);
        luaL_argcheck(L, low <= high, 1, "interval is empty");
    } else {
        low = luaL_checknumber(L, 1);
        high = luaL_checknumber(L, 2);
        luaL_argcheck(L, low <= high, 2, "interval is empty");
    }
    lua_pushnumber(L, floor(r * (high - low + 1)) + low);
    return 1;
}

int guarded_randomseed(lua_State *L)
{
    return luaL_error(L, "math.randomseed: the host seeds math.random by the"
                         " message, so that a replay gives the same");
}

/* The library's own returns "" or fills the machine for a huge result. */
int guarded_rep(lua_State *L)
{
    size_t len;
    size_t separator = 0;
    double total;
    lua_Number count;

    (void)luaL_checklstring(L, 1, &len);
    count = luaL_checknumber(L, 2);
    (void)luaL_optlstring(L, 3, "", &separator);
    total = count * (double)(len + separator);
    if (len + separator == 0 || !(count > 0)) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (total > (double)script_state_of(L)->limits.memory || total > REP_MAX)
        return luaL_error(L, "string.rep: the result would have %f bytes",
                          total);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* A sort may take longer than thousands of instructions, and its comparison
 * may sort. */
int guarded_sort(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    limits_check(L);
    limits_check_stack(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, 0);
    return 0;
}

/* Where a Lua stack is full no hook can run, so a script that recurses and
 * catches the overflow would never meet the deadline: pcall looks as well. */
static int check_limits(lua_State *L)
{
    limits_check(L);
    limits_check_stack(L);
    return 0;
}

/* A message handler under the hook's own error would run without hooks, so
 * here it is called after the fact. */
static const char PROTECTED_CALLS[] =
    "local base_pcall, check_limits = ...\n"
    "local function pcall(...)\n"
    "  check_limits()\n"
    "  return base_pcall(...)\n"
    "end\n"
    "local function finish(handler, ok, ...)\n"
    "  if ok then return true, ... end\n"
    "  local _, result = pcall(handler, (...))\n"
    "  return false, result\n"
    "end\n"
    "local function xpcall(f, handler, ...)\n"
    "  return finish(handler, pcall(f, ...))\n"
    "end\n"
    "return pcall, xpcall\n";

void guarded_push_calls(lua_State *L, int hidden)
{
    if (luaL_loadbufferx(L, PROTECTED_CALLS, sizeof(PROTECTED_CALLS) - 1,
                         "=pcall", "t") != 0)
        (void)lua_error(L);
    lua_getfield(L, hidden, "pcall");
    lua_pushcfunction(L, check_limits);
    lua_call(L, 2, 2);
}
