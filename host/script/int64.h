/*
 * int64 -- 64-bit integers of JSON and SQL as Lua values, exact.
 *
 * Up to 2^53 they are numbers; beyond it they are LuaJIT's int64 cdata, which
 * LuaJIT's C interface can neither make nor read, so a state keeps two small
 * functions for it. The ffi library itself stays out of reach of scripts.
 */
#ifndef HOST_SCRIPT_INT64_H
#define HOST_SCRIPT_INT64_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#define INT64_EXACT (INT64_C(1) << 53) /* doubles are exact up to here */

/** lua_type() of cdata; lua.h has no name for it. */
#define INT64_CDATA 10

/** Prepares a state whose base library is open. From protected code. */
void int64_register(lua_State *L);

/** Pushes a number up to 2^53, int64 cdata beyond. May raise a memory error
 * (and what the count hook raises). */
void int64_push(lua_State *L, int64_t value);

enum int64_kind {
    INT64_NOT,   /* no integer at all */
    INT64_VALUE, /* *value holds it */
    INT64_RANGE, /* a uint64 beyond int64, or a double beyond 2^53 */
};

/** Reads an integral number or an int64 or uint64 cdata. May raise as above
 * for cdata only. */
enum int64_kind int64_read(lua_State *L, int index, int64_t *value);

#endif
