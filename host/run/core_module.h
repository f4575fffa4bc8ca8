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

#endif
