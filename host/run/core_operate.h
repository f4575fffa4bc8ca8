/*
 * Core operate -- the operator's methods of a host in the testing kit. They
 * run the code behind the command line's verbs, and give what it prints with
 * --json.
 */
#ifndef HOST_RUN_CORE_OPERATE_H
#define HOST_RUN_CORE_OPERATE_H

#include <lua.h>

/** Adds the methods to the table on the top of the stack. */
void core_operate_register(lua_State *L);

#endif
