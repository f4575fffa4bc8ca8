/*
 * Lua runtime -- a plain LuaJIT state with the host's modules: what `moontide
 * test`, `lua` and `console` run in. All of the library is open in it; scripts
 * of the application keep to their sandbox, in states of their own.
 */
#ifndef HOST_CLI_LUA_RUNTIME_H
#define HOST_CLI_LUA_RUNTIME_H

#include "base/status.h"

#include <lua.h>

/** What runs in the state, protected; it returns to lua_runtime_run. */
struct lua_runtime {
    lua_CFunction body; /* gets `arg` as light userdata at index 1 */
    void *arg;
};

/** Makes a state, opens the libraries, puts `moontide`, `moontide.*` and
 * `moontide.core` into package.preload, and calls the body. FAILED: the text
 * of the error. The state is closed on return. */
enum status lua_runtime_run(const struct lua_runtime *runtime,
                            struct diag *diag) MUST_CHECK;

/** Sets the global `arg` from a list that ends with NULL; arg[0] is `name`.
 * From the body. */
void lua_runtime_set_arg(lua_State *L, const char *name, char **arguments);

/** Lets `require` look into `folder` and then into the working folder before
 * all else, as scripts do. From the body. */
void lua_runtime_search(lua_State *L, const char *folder);

#endif
