/*
 * Core command -- commands of aggregates in the Lua module moontide.core: run
 * by a host, or decided without one.
 */
#ifndef HOST_RUN_CORE_COMMAND_H
#define HOST_RUN_CORE_COMMAND_H

#include <lua.h>

/** Adds the methods to the host's metatable at the top. */
void core_command_register(lua_State *L);

/** core.decide(folder, scripts, { aggregate, id, command, args, metadata,
 * events }) -> JSON, see run/decide.h. */
int core_command_decide(lua_State *L);

#endif
