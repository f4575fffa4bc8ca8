/*
 * Core read -- what a host in the testing kit tells of its database: read
 * models, and the rows of any query, as JSON; and read models that were folded
 * without one.
 */
#ifndef HOST_RUN_CORE_READ_H
#define HOST_RUN_CORE_READ_H

#include <lua.h>

/** Adds the methods to the table on the top of the stack. */
void core_read_register(lua_State *L);

/** core.fold: the read models of a pure fold over events. */
int core_read_fold(lua_State *L);

#endif
