/*
 * Guarded -- functions that stand in for those of Lua's library which would
 * hang, fill the machine, or give something else at every run. The patterns
 * are in script/pattern.h; script/sandbox.c puts all of them in place.
 */
#ifndef HOST_SCRIPT_GUARDED_H
#define HOST_SCRIPT_GUARDED_H

#include <lua.h>

int guarded_rawget(lua_State *L); /* looks through locks */
int guarded_rawset(lua_State *L); /* refuses locked tables */
int guarded_random(lua_State *L); /* by script_state_seed */
int guarded_randomseed(lua_State *L);
/** print; upvalue: the library's globals. */
int guarded_print(lua_State *L);
/** string.rep; upvalue: the library's. */
int guarded_rep(lua_State *L);
/** table.sort; upvalue: the library's. */
int guarded_sort(lua_State *L);

/** Pushes pcall and xpcall, made of the pcall in the globals at `hidden`. */
void guarded_push_calls(lua_State *L, int hidden);

#endif
