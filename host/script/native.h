/*
 * Native -- the C functions that the Lua modules in lua/moontide stand on.
 * A sandboxed state hands them to its modules (script_state_push_native); a
 * plain LuaJIT (busted) finds them in the table of `require "moontide.core"`.
 */
#ifndef HOST_SCRIPT_NATIVE_H
#define HOST_SCRIPT_NATIVE_H

#include <lua.h>
#include <stdbool.h>

/** Registers the JSON codec and puts the functions into the table on the top.
 * `sandboxed`: the state was made by script_state_open. From protected code,
 * once per state. */
void native_open(lua_State *L, bool sandboxed);

/** Characters of moontide.reject's reason, at most. */
#define NATIVE_REASON_CHARS 1000

/** What a value made by a function of moontide is. */
enum native_kind {
    NATIVE_NONE,
    NATIVE_DELETE, /* moontide.delete */
    NATIVE_ADD,    /* moontide.add(n) */
    NATIVE_BYTES,  /* moontide.bytes(s) */
    NATIVE_SPLIT,  /* moontide.split(list) */
    NATIVE_REJECT, /* moontide.reject(reason, details) */
};

enum native_kind native_kind(lua_State *L, int index);
/** Pushes what such a function was given first. */
void native_push_value(lua_State *L, int index);

#endif
