/*
 * JSON codec -- JSON text to Lua values and back, exact (design 12, J1 to J6).
 *
 * Decode: objects and arrays are tables; arrays carry the array metatable, so
 * [] stays []; null is moontide.null (the NULL light userdata, as in cjson);
 * integers beyond 2^53 are int64 cdata; everything else numeric is a double.
 * Encode: keys sorted by bytes; a table with the array metatable is an array,
 * so is an untagged one with keys 1..n, n > 0; an untagged empty table is {}.
 * Errors name the path: payload.items[3].price.
 */
#ifndef HOST_SCRIPT_JSON_CODEC_H
#define HOST_SCRIPT_JSON_CODEC_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <lua.h>

/** Makes the metatables of a state; call once, before anything else, from
 * protected code. */
void json_codec_register(lua_State *L);

/** Pushes the value of checked or unchecked text. INVALID (nothing pushed)
 * says why and where. May raise only a memory error. */
enum status json_codec_decode(lua_State *L, struct text json,
                              struct diag *diag) MUST_CHECK;

/** Appends the value at `index` as JSON. `root` starts the path of errors
 * ("payload", "state"). INVALID names the path; `out` is as before then. May
 * raise only a memory error, and owns nothing when it does. */
enum status json_codec_encode(lua_State *L, int index, const char *root,
                              struct buffer *out, struct diag *diag)
    MUST_CHECK;

/** moontide.array(t): tags t (or a new table) as an array. */
int json_codec_array(lua_State *L);
/** moontide.object(t): tags t (or a new table) as an object, so that an empty
 * one stays {} and one with number keys is refused. */
int json_codec_object(lua_State *L);

#endif
