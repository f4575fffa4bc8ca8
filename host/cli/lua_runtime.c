#include "cli/lua_runtime.h"

#include "run/core_module.h"
#include "script/lua_call.h"
#include "script/lua_files.h"

#include <lauxlib.h>
#include <lualib.h>

static void preload_modules(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    for (size_t i = 0; i < lua_files_count; i++) {
        const struct lua_file *file = &lua_files[i];

        if (luaL_loadbuffer(L, file->data, file->len, file->chunk) != 0)
            lua_error(L);
        lua_setfield(L, -2, file->module);
    }
    lua_pushcfunction(L, luaopen_moontide_core);
    lua_setfield(L, -2, "moontide.core");
    lua_pop(L, 2);
}

static int runtime_body(lua_State *L)
{
    const struct lua_runtime *runtime = lua_touserdata(L, 1);

    luaL_openlibs(L);
    preload_modules(L);
    lua_pushcfunction(L, runtime->body);
    lua_pushlightuserdata(L, runtime->arg);
    lua_call(L, 1, 0);
    return 0;
}

void lua_runtime_set_arg(lua_State *L, const char *name, char **arguments)
{
    lua_newtable(L);
    lua_pushstring(L, name);
    lua_rawseti(L, -2, 0);
    for (int i = 0; arguments[i] != NULL; i++) {
        lua_pushstring(L, arguments[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setglobal(L, "arg");
}

void lua_runtime_search(lua_State *L, const char *folder)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_pushfstring(L, "./%s/?.lua;./%s/?/init.lua;./?.lua;./?/init.lua;%s",
                    folder, folder, lua_tostring(L, -1));
    lua_setfield(L, -3, "path");
    lua_pop(L, 2);
}

enum status lua_runtime_run(const struct lua_runtime *runtime,
                            struct diag *diag)
{
    lua_State *L = luaL_newstate();
    enum status status;

    if (L == NULL)
        return diag_set(diag, STATUS_FAILED, "no memory for a Lua state");
    status = lua_call_foreign(L, runtime_body, (void *)runtime, diag);
    lua_close(L);
    return status;
}
