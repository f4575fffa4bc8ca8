/*
 * Pattern -- find, match, gmatch and gsub of Lua 5.1 with a deadline. The
 * library's own run in C for as long as a bad pattern makes them, where no
 * hook can stop them; these look at the clock every few thousand steps.
 *
 * Differences: NUL is an ordinary byte in a pattern, and a '%' that ends a
 * replacement is an error.
 */
#ifndef HOST_SCRIPT_PATTERN_H
#define HOST_SCRIPT_PATTERN_H

#include <lua.h>

/* Functions of the library `string`. */
int pattern_find(lua_State *L);
int pattern_match(lua_State *L);
int pattern_gmatch(lua_State *L);
int pattern_gsub(lua_State *L);

#endif
