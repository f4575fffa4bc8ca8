/*
 * Lock -- tables that scripts can read and not change: an empty table stands
 * before the real one, passes reads on and refuses assignments.
 */
#ifndef HOST_SCRIPT_LOCK_H
#define HOST_SCRIPT_LOCK_H

#include <lua.h>
#include <stdbool.h>

/** Replaces the table on the top by its lock; `name` is for the message. From
 * protected code. */
void lock_library(lua_State *L, const char *name);

/** The same for the globals: "assignment to global 'x' (...)". */
void lock_globals(lua_State *L);

/** Pushes the real table when the value at `index` is a lock of it. */
bool lock_push_real(lua_State *L, int index);

#endif
