#include "script/sandbox.h"

#include "script/guarded.h"
#include "script/lock.h"
#include "script/pattern.h"
#include "script/require.h"

#include <lualib.h>
#include <string.h>

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
    lock_library(L, name);
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
    lua_pushcfunction(L, guarded_rawget);
    lua_setfield(L, globals, "rawget");
    lua_pushcfunction(L, guarded_rawset);
    lua_setfield(L, globals, "rawset");
    lua_pushvalue(L, hidden);
    lua_pushcclosure(L, guarded_print, 1);
    lua_setfield(L, globals, "print");
    lua_pushcfunction(L, require_module);
    lua_setfield(L, globals, "require");
    guarded_push_calls(L, hidden);
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
    lua_pushcclosure(L, guarded_rep, 1);
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
    lua_getfield(L, -2, "sort");
    lua_pushcclosure(L, guarded_sort, 1);
    lua_setfield(L, -2, "sort");
    add_library(L, globals, "table");
    lua_pop(L, 1);
}

static void add_math(lua_State *L, int hidden, int globals)
{
    lua_getfield(L, hidden, "math");
    lua_newtable(L);
    copy(L, lua_gettop(L) - 1, math_names);
    lua_pushcfunction(L, guarded_random);
    lua_setfield(L, -2, "random");
    lua_pushcfunction(L, guarded_randomseed);
    lua_setfield(L, -2, "randomseed");
    add_library(L, globals, "math");
    lua_pop(L, 1);
}

/* Without this the compiler has no settings, and compiles nothing. Scripts see
 * the library only when it is granted. */
static void open_compiler(lua_State *L)
{
    lua_pushcfunction(L, luaopen_jit);
    lua_pushliteral(L, "jit");
    lua_call(L, 1, 0);
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

void sandbox_open(lua_State *L, const char *const *grants, bool jit)
{
    struct script_state *state = script_state_of(L);
    int hidden;
    int globals;

    lua_pushvalue(L, LUA_GLOBALSINDEX);
    hidden = lua_gettop(L);
    open_libraries(L);
    if (jit)
        open_compiler(L);
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
    lock_globals(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, globals, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_pushvalue(L, globals);
    state->globals_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, hidden);
    state->hidden_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
