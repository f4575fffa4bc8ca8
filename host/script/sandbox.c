#include "script/sandbox.h"

#include "script/lua_call.h"
#include "script/pattern.h"
#include "script/require.h"

#include <lualib.h>
#include <math.h>
#include <string.h>

#define REP_MAX (INT32_MAX / 2) /* bytes a string.rep may make */

static const char LOCKED_KEY; /* its address marks metatables of locks */

/* What is copied from the library as it is. */
static const char *const base_names[] = {
    "assert",   "error",    "getmetatable", "ipairs",       "next",
    "pairs",    "rawequal", "select",       "setmetatable", "tonumber",
    "tostring", "type",     "unpack",       "_VERSION",     NULL};
static const char *const string_names[] = {
    "byte", "char", "format", "len", "lower", "reverse", "sub", "upper", NULL};
static const char *const table_names[] = {"concat", "insert", "maxn",
                                          "remove", "sort",   NULL};
static const char *const math_names[] = {
    "abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh",
    "deg",   "exp",  "floor", "fmod", "frexp", "huge", "ldexp", "log",
    "log10", "max",  "min",   "modf", "pi",    "pow",  "rad",   "sin",
    "sinh",  "sqrt", "tan",   "tanh", NULL};
static const char *const bit_names[] = {
    "arshift", "band", "bnot",   "bor",   "bswap", "bxor", "lshift",
    "rol",     "ror",  "rshift", "tobit", "tohex", NULL};
static const char *const coroutine_names[] = {
    "create", "isyieldable", "resume", "running",
    "status", "wrap",        "yield",  NULL};

/* What configuration can grant: a library, or globals of the base library. */
static const char *const library_grants[] = {"os",  "io",      "debug",
                                             "jit", "package", NULL};
static const char *const load_names[] = {"load", "loadstring", "loadfile",
                                         "dofile", NULL};
static const char *const fenv_names[] = {"getfenv", "setfenv", NULL};
static const char *const collect_names[] = {"collectgarbage", NULL};
static const char *const proxy_names[] = {"newproxy", NULL};
static const struct {
    const char *grant;
    const char *const *names;
} base_grants[] = {
    {"load", load_names},
    {"setfenv", fenv_names},
    {"collectgarbage", collect_names},
    {"newproxy", proxy_names},
};
static const char *const all_grants[] = {
    "collectgarbage", "debug", "ffi",     "io",      "jit", "load",
    "newproxy",       "os",    "package", "setfenv", NULL};

static bool contains(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(*names, name) == 0)
            return true;
    }
    return false;
}

enum status sandbox_check_grants(const char *const *grants, struct diag *diag)
{
    for (; grants != NULL && *grants != NULL; grants++) {
        const char *nearest;

        if (contains(all_grants, *grants))
            continue;
        nearest = text_nearest(*grants, all_grants);
        if (nearest != NULL)
            return diag_set(diag, STATUS_CONFIG,
                            "grants: unknown name \"%s\"; did you mean \"%s\"?",
                            *grants, nearest);
        return diag_set(diag, STATUS_CONFIG,
                        "grants: unknown name \"%s\"; there are collectgarbage,"
                        " debug, ffi, io, jit, load, newproxy, os, package,"
                        " setfenv",
                        *grants);
    }
    return STATUS_OK;
}

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

/* Like sandbox_lock, with the function on the top as __newindex. */
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

void sandbox_lock(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_pushcclosure(L, refuse_change, 1);
    lock(L);
}

/* Pushes the real table when the value at `index` is a lock of it. */
static bool push_unlocked(lua_State *L, int index)
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

static int raw_get(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    if (push_unlocked(L, 1))
        lua_replace(L, 1);
    lua_rawget(L, 1);
    return 1;
}

static int raw_set(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    if (push_unlocked(L, 1))
        return luaL_error(L, "rawset: this table is read-only");
    lua_rawset(L, 1);
    return 1;
}

/* print(...): one line of the log, with where it was called. */
static int print(lua_State *L)
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
    log_write(state->log, LOG_INFO, NULL, "%s: %s", where, line);
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

static int math_random(lua_State *L)
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

static int math_randomseed(lua_State *L)
{
    return luaL_error(L, "math.randomseed: the host seeds math.random by the"
                         " message, so that a replay gives the same");
}

/* The library's own returns "" or fills the machine for a huge result. */
static int string_rep(lua_State *L)
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

/* Copies fields of the table at `from` to the one on the top. */
static void copy(lua_State *L, int from, const char *const *names)
{
    for (; *names != NULL; names++) {
        lua_getfield(L, from, *names);
        lua_setfield(L, -2, *names);
    }
}

/* Adds the locked copy of a library to the globals at `to`; what lies on the
 * top is the copy. */
static void add_library(lua_State *L, int to, const char *name)
{
    sandbox_lock(L, name);
    lua_setfield(L, to, name);
}

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        {"", luaopen_base},
        {LUA_LOADLIBNAME, luaopen_package},
        {LUA_TABLIBNAME, luaopen_table},
        {LUA_STRLIBNAME, luaopen_string},
        {LUA_MATHLIBNAME, luaopen_math},
        {LUA_BITLIBNAME, luaopen_bit},
    };

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        lua_pushcfunction(L, libraries[i].func);
        lua_pushstring(L, libraries[i].name);
        lua_call(L, 1, 0);
    }
}

/* table.new and table.clear register themselves when first asked for. */
static void open_table_extras(lua_State *L)
{
    static const char *const names[] = {"table.new", "table.clear"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
        if (lua_istable(L, -1)) {
            lua_getfield(L, -1, names[i]);
            if (lua_isfunction(L, -1))
                lua_call(L, 0, 0);
            else
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
}

static void add_base(lua_State *L, int hidden, int globals)
{
    lua_pushvalue(L, globals);
    copy(L, hidden, base_names);
    lua_pushcfunction(L, raw_get);
    lua_setfield(L, globals, "rawget");
    lua_pushcfunction(L, raw_set);
    lua_setfield(L, globals, "rawset");
    lua_pushvalue(L, hidden);
    lua_pushcclosure(L, print, 1);
    lua_setfield(L, globals, "print");
    lua_pushcfunction(L, require_module);
    lua_setfield(L, globals, "require");
    if (luaL_loadbufferx(L, PROTECTED_CALLS, sizeof(PROTECTED_CALLS) - 1,
                         "=pcall", "t") != 0)
        (void)lua_error(L);
    lua_getfield(L, hidden, "pcall");
    lua_pushcfunction(L, check_limits);
    lua_call(L, 2, 2);
    lua_setfield(L, globals, "xpcall");
    lua_setfield(L, globals, "pcall");
    lua_pop(L, 1);
}

static void add_string(lua_State *L, int hidden, int globals)
{
    static const luaL_Reg guarded[] = {
        {"find", pattern_find},
        {"match", pattern_match},
        {"gmatch", pattern_gmatch},
        {"gsub", pattern_gsub},
        {NULL, NULL},
    };

    lua_getfield(L, hidden, "string");
    lua_newtable(L);
    copy(L, lua_gettop(L) - 1, string_names);
    luaL_register(L, NULL, guarded);
    lua_getfield(L, -2, "rep");
    lua_pushcclosure(L, string_rep, 1);
    lua_setfield(L, -2, "rep");
    /* ("x"):rep reaches the same functions, and nothing else */
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1) != 0) {
        lua_pushvalue(L, -3);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    add_library(L, globals, "string");
    lua_pop(L, 1);
}

static void add_plain(lua_State *L, int hidden, int globals, const char *name,
                      const char *const *names)
{
    lua_getfield(L, hidden, name);
    lua_newtable(L);
    copy(L, lua_gettop(L) - 1, names);
    add_library(L, globals, name);
    lua_pop(L, 1);
}

static void add_table(lua_State *L, int hidden, int globals)
{
    static const char *const extras[] = {"new", "clear", NULL};

    open_table_extras(L);
    lua_getfield(L, hidden, "table");
    lua_newtable(L);
    copy(L, lua_gettop(L) - 1, table_names);
    copy(L, lua_gettop(L) - 1, extras);
    add_library(L, globals, "table");
    lua_pop(L, 1);
}

static void add_math(lua_State *L, int hidden, int globals)
{
    lua_getfield(L, hidden, "math");
    lua_newtable(L);
    copy(L, lua_gettop(L) - 1, math_names);
    lua_pushcfunction(L, math_random);
    lua_setfield(L, -2, "random");
    lua_pushcfunction(L, math_randomseed);
    lua_setfield(L, -2, "randomseed");
    add_library(L, globals, "math");
    lua_pop(L, 1);
}

static void add_grants(lua_State *L, int hidden, int globals,
                       const char *const *grants)
{
    static const struct {
        const char *name;
        lua_CFunction open;
    } libraries[] = {
        {"os", luaopen_os},   {"io", luaopen_io},   {"debug", luaopen_debug},
        {"jit", luaopen_jit}, {"ffi", luaopen_ffi},
    };
    struct script_state *state = script_state_of(L);

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (!contains(grants, libraries[i].name))
            continue;
        lua_pushcfunction(L, libraries[i].open);
        lua_pushstring(L, libraries[i].name);
        lua_call(L, 1, 1);
        /* as in LuaJIT itself, ffi is a module and no global */
        if (strcmp(libraries[i].name, "ffi") == 0) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, state->modules_ref);
            lua_insert(L, -2);
            lua_setfield(L, -2, "ffi");
        }
        lua_pop(L, 1);
    }
    lua_pushvalue(L, globals);
    for (size_t i = 0; library_grants[i] != NULL; i++) {
        const char *const name[] = {library_grants[i], NULL};

        if (contains(grants, library_grants[i]))
            copy(L, hidden, name);
    }
    for (size_t i = 0; i < sizeof(base_grants) / sizeof(base_grants[0]); i++) {
        if (contains(grants, base_grants[i].grant))
            copy(L, hidden, base_grants[i].names);
    }
    lua_pop(L, 1);
    state->package_granted = contains(grants, "package");
}

void sandbox_open(lua_State *L, const char *const *grants)
{
    struct script_state *state = script_state_of(L);
    int hidden;
    int globals;

    lua_pushvalue(L, LUA_GLOBALSINDEX);
    hidden = lua_gettop(L);
    open_libraries(L);
    lua_newtable(L);
    globals = lua_gettop(L);
    add_base(L, hidden, globals);
    add_string(L, hidden, globals);
    add_table(L, hidden, globals);
    add_math(L, hidden, globals);
    add_plain(L, hidden, globals, "bit", bit_names);
    add_plain(L, hidden, globals, "coroutine", coroutine_names);
    add_grants(L, hidden, globals, grants);

    lua_pushvalue(L, globals);
    lua_pushcfunction(L, refuse_global);
    lock(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, globals, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_pushvalue(L, globals);
    state->globals_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, hidden);
    state->hidden_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
