/*
 * Core module -- `require "moontide.core"`: the host inside another Lua state
 * (busted, a REPL). The testing kit (lua/moontide/testing.lua) is its user;
 * values cross as JSON text, sugar is written in Lua.
 */
#ifndef HOST_RUN_CORE_MODULE_H
#define HOST_RUN_CORE_MODULE_H

#include "script/script.h"

#include <lua.h>

/** Pushes the module's table. Loaded by name, so it follows Lua's naming. */
__attribute__((visibility("default"))) int luaopen_moontide_core(lua_State *L);

/* Shared with run/core_read.c, run/core_operate.c and run/core_command.c, which
 * add methods. */

struct append_event;
struct buffer;
struct test_host;

/** The host of the userdata at `arg`; raises when it is closed or none. */
struct test_host *core_module_host(lua_State *L, int arg);
/** Pushes a buffer that Lua's collector frees. */
struct buffer *core_module_scratch(lua_State *L);
/** Ends a method: pushes what the buffer holds and empties it, or raises the
 * text of the failure; the caller owns nothing by then. */
int core_module_answer(lua_State *L, enum status status, struct buffer *out,
                       const struct diag *diag);
/** Reads the event at the top of the stack, whose texts live with it. */
void core_module_event(lua_State *L, struct append_event *event);
/** How the application in the folder at 1 with the scripts folder at 2 is
 * loaded for a pure check. */
struct script_options core_module_options(lua_State *L,
                                          const struct clock *clock,
                                          const struct log *log);

#endif
