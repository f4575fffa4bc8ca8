/*
 * Core module -- `require "moontide.core"`: the host inside another Lua state
 * (busted, a REPL). The testing kit (lua/moontide/testing.lua) is its user;
 * values cross as JSON text, sugar is written in Lua.
 */
#ifndef HOST_RUN_CORE_MODULE_H
#define HOST_RUN_CORE_MODULE_H

#include <lua.h>

/** Pushes the module's table. Loaded by name, so it follows Lua's naming. */
__attribute__((visibility("default"))) int luaopen_moontide_core(lua_State *L);

/* Shared with run/core_operate.c, which adds the operator's methods. */

struct buffer;
struct test_host;

/** The host of the userdata at `arg`; raises when it is closed or none. */
struct test_host *core_module_host(lua_State *L, int arg);
/** Pushes a buffer that Lua's collector frees. */
struct buffer *core_module_scratch(lua_State *L);

#endif
