#include "script/require.h"

#include "base/buffer.h"
#include "script/lock.h"
#include "script/lua_call.h"
#include "script/lua_files.h"
#include "script/source_set.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 200
#define HERE_CPATH   "./?.so;"
#define LOADER_OF_C  3 /* in package.loaders */

static const char LOADING_KEY; /* its address stands for a module in loading */

/* Globals that `require` gives as well, if the script sees them. */
static bool is_library(const char *name)
{
    static const char *const names[] = {"string",    "table",  "math", "bit",
                                        "coroutine", "os",     "io",   "debug",
                                        "jit",       "package"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool is_cjson(const char *name)
{
    return strcmp(name, "cjson") == 0 || strcmp(name, "cjson.safe") == 0;
}

static bool valid_name(const char *name, size_t len)
{
    bool segment = false;

    if (len == 0 || strlen(name) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];

        if (c == '.' && segment)
            segment = false;
        else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '_' || c == '-')
            segment = true;
        else
            return false;
    }
    return segment;
}

static const struct lua_file *embedded(const char *name)
{
    for (size_t i = 0; i < lua_files_count; i++) {
        if (strcmp(lua_files[i].module, name) == 0)
            return &lua_files[i];
    }
    return NULL;
}

static bool is_inside(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    if (len == 1) /* "/" */
        return true;
    return strncmp(path, folder, len) == 0 && path[len] == '/';
}

void require_chunk_name(const struct script_state *state, const char *path,
                        char *out, size_t size)
{
    const char *name = path;

    if (state->app_dir != NULL && is_inside(path, state->app_dir)) {
        name = path + strlen(state->app_dir);
    } else if (state->scripts != NULL && is_inside(path, state->scripts)) {
        name = strrchr(state->scripts, '/');
        name = path + (name - state->scripts);
    }
    (void)snprintf(out, size, "%s", name[0] == '/' ? name + 1 : name);
}

enum found { FOUND_NOT, FOUND_FILE, FOUND_OUTSIDE };

/* Finds root/rel, or root/rel with init.lua; resolved to *path. */
static enum found find_below(const char *root, const char *rel,
                             char path[PATH_MAX])
{
    static const char *const endings[] = {".lua", "/init.lua"};
    char wanted[PATH_MAX];

    if (root == NULL)
        return FOUND_NOT;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        int len = snprintf(wanted, sizeof(wanted), "%s/%s%s", root, rel,
                           endings[i]);

        if (len < 0 || (size_t)len >= sizeof(wanted) ||
            realpath(wanted, path) == NULL)
            continue;
        return is_inside(path, root) ? FOUND_FILE : FOUND_OUTSIDE;
    }
    return FOUND_NOT;
}

static enum found find_file(const struct script_state *state, const char *name,
                            char path[PATH_MAX])
{
    char rel[NAME_MAX_LEN + 1];
    enum found found;

    (void)snprintf(rel, sizeof(rel), "%s", name);
    for (char *c = rel; *c != '\0'; c++) {
        if (*c == '.')
            *c = '/';
    }
    found = find_below(state->scripts, rel, path);
    return found != FOUND_NOT ? found : find_below(state->app_dir, rel, path);
}

bool require_find(const struct script_state *state, const char *name,
                  char path[PATH_MAX])
{
    size_t len = strlen(name);

    return len <= NAME_MAX_LEN && valid_name(name, len) && !is_library(name) &&
           !is_cjson(name) && embedded(name) == NULL &&
           find_file(state, name, path) == FOUND_FILE;
}

/* Once the scripts are loaded: from what was read then, whatever has become
 * of the file since. */
static bool push_kept(lua_State *L, const char *name)
{
    const struct script_state *state = script_state_of(L);
    const char *chunk;
    struct text source;
    char path[PATH_MAX];
    struct diag diag;

    if (!source_set_module(state->sources, name, &chunk, &source)) {
        if (find_file(state, name, path) == FOUND_FILE)
            luaL_error(L,
                       "require \"%s\": a file that only a handler asks for,"
                       " by a name that is put together, is no part of the"
                       " loaded version; require it at the top of the file, or"
                       " write the name out",
                       name);
        return false;
    }
    if (lua_call_load(L, source, chunk, &diag) != STATUS_OK)
        luaL_error(L, "require \"%s\": %s", name, diag.message);
    return true;
}

/* Pushes the chunk of a file of the application; false if there is none. */
static bool push_file(lua_State *L, const char *name)
{
    const struct script_state *state = script_state_of(L);
    char path[PATH_MAX];
    char chunk[PATH_MAX];
    struct buffer source = BUFFER_EMPTY;
    struct diag diag;
    enum found found;
    enum status status;

    if (state->sources != NULL && source_set_is_sealed(state->sources))
        return push_kept(L, name);
    found = find_file(state, name, path);
    if (found == FOUND_OUTSIDE)
        luaL_error(L,
                   "require \"%s\": the file lies outside of the"
                   " application",
                   name);
    if (found == FOUND_NOT)
        return false;
    require_chunk_name(state, path, chunk, sizeof(chunk));
    status = buffer_read_file(&source, path, REQUIRE_SOURCE_LIMIT, &diag);
    if (status == STATUS_OK)
        status = lua_call_load(L, buffer_text(&source), chunk, &diag);
    if (status == STATUS_OK && state->sources != NULL)
        source_set_add(state->sources, chunk, name, buffer_text(&source));
    buffer_free(&source);
    if (status != STATUS_OK)
        luaL_error(L, "require \"%s\": %s", name, diag.message);
    return true;
}

/* Pushes what lua-cjson's opening function gives, locked. */
static void push_cjson(lua_State *L, const char *name)
{
    const struct script_state *state = script_state_of(L);
    const char *cpath;

    lua_rawgeti(L, LUA_REGISTRYINDEX, state->hidden_ref);
    lua_getfield(L, -1, "package");
    lua_getfield(L, -1, "cpath");
    cpath = lua_tostring(L, -1);
    if (cpath != NULL && strncmp(cpath, HERE_CPATH, strlen(HERE_CPATH)) == 0) {
        /* never a library that happens to lie in the working folder */
        lua_pushstring(L, cpath + strlen(HERE_CPATH));
        lua_setfield(L, -3, "cpath");
    }
    lua_pop(L, 1);
    lua_getfield(L, -1, "loaders");
    lua_rawgeti(L, -1, LOADER_OF_C);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    if (!lua_isfunction(L, -1))
        luaL_error(L,
                   "require \"%s\": it is not installed; install the"
                   " package lua-cjson",
                   name);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    lock_library(L, name);
}

/* Runs the chunk on the top with (name, native) and leaves its result. */
static void run_module(lua_State *L, const char *name, bool native)
{
    struct script_state *state = script_state_of(L);
    struct lua_failure failure;

    lua_pushstring(L, name);
    if (native)
        script_state_push_native(state, L);
    /* Protected, to forget that it is loading when it fails. */
    if (lua_call_protected(L, native ? 2 : 1, 1, &failure) != LUA_CALL_OK) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, state->modules_ref);
        lua_pushnil(L);
        lua_setfield(L, -2, name);
        if (failure.outcome == LUA_CALL_ERROR)
            luaL_error(L, "require \"%s\": %s", name, failure.message);
        (void)lua_call_raise_failure(L, &failure);
    }
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
}

/* The value of a module that is loaded already, or a library: pushed. */
static bool push_known(lua_State *L, const char *name)
{
    const struct script_state *state = script_state_of(L);

    lua_rawgeti(L, LUA_REGISTRYINDEX, state->modules_ref);
    lua_getfield(L, -1, name);
    if (lua_touserdata(L, -1) == (void *)(uintptr_t)&LOADING_KEY)
        luaL_error(L,
                   "require \"%s\": it is being loaded already (the files"
                   " require each other)",
                   name);
    if (!lua_isnil(L, -1))
        return true;
    if (!is_library(name))
        return false;
    lua_rawgeti(L, LUA_REGISTRYINDEX, state->globals_ref);
    lua_getfield(L, -1, name);
    return !lua_isnil(L, -1);
}

static int not_found(lua_State *L, const char *name)
{
    const struct script_state *state = script_state_of(L);
    char scripts[PATH_MAX];

    if (is_library(name) || strcmp(name, "ffi") == 0)
        return luaL_error(L,
                          "require \"%s\": scripts do not see this library"
                          " unless grants in moontide.conf.lua names it",
                          name);
    if (state->scripts == NULL)
        return luaL_error(L, "require \"%s\": there is no such module", name);
    require_chunk_name(state, state->scripts, scripts, sizeof(scripts));
    luaL_gsub(L, name, ".", "/");
    return luaL_error(L,
                      "require \"%s\": there is neither %s/%s.lua nor"
                      " %s.lua in the application",
                      name, scripts, lua_tostring(L, -1), lua_tostring(L, -1));
}

/* Notes which file of the application has asked. */
static void note_caller(lua_State *L, const char *name)
{
    const struct script_state *state = script_state_of(L);
    lua_Debug info;

    if (state->sources == NULL || source_set_is_sealed(state->sources))
        return;
    for (int level = 1; lua_getstack(L, level, &info) != 0; level++) {
        if (lua_getinfo(L, "S", &info) == 0 || *info.source != '@')
            continue;
        source_set_require(state->sources, info.source + 1, name);
        return;
    }
}

int require_module(lua_State *L)
{
    struct script_state *state = script_state_of(L);
    const struct lua_file *file;
    size_t len;
    const char *name = luaL_checklstring(L, 1, &len);
    struct diag diag;

    lua_settop(L, 1);
    if (len > NAME_MAX_LEN)
        return luaL_error(L, "require: the name is too long");
    if (!valid_name(name, len))
        return luaL_error(L,
                          "require \"%s\": a module is named by words"
                          " joined with dots, as in \"lib.money\"",
                          name);
    note_caller(L, name);
    if (push_known(L, name))
        return 1;
    lua_settop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, state->modules_ref);

    file = embedded(name);
    if (is_cjson(name)) {
        push_cjson(L, name);
    } else if (file != NULL) {
        if (lua_call_load(L, (struct text){file->data, file->len},
                          file->chunk + 1, &diag) != STATUS_OK)
            return luaL_error(L, "%s", diag.message);
        lua_pushlightuserdata(L, (void *)(uintptr_t)&LOADING_KEY);
        lua_setfield(L, 2, name);
        run_module(L, name, true);
        if (lua_istable(L, -1))
            lock_library(L, name);
    } else if (push_file(L, name)) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)&LOADING_KEY);
        lua_setfield(L, 2, name);
        run_module(L, name, false);
    } else if (state->package_granted) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, state->hidden_ref);
        lua_getfield(L, -1, "require");
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
    } else {
        return not_found(L, name);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}
