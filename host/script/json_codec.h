/*
 * JSON codec -- JSON text to Lua values and back, exact (design 12, J1 to J6).
 *
 * Decode: objects and arrays are tables; arrays carry the array metatable, so
 * [] stays []; null is moontide.null (the NULL light userdata, as in cjson);
 * integers beyond 2^53 are int64 cdata and beyond 64 bits an error; everything
 * else numeric is a double, -0 included. A repeated name: the last one counts.
 * Encode: keys sorted by bytes; a table with the array metatable is an array,
 * so is an untagged one with keys 1..n, n > 0; an untagged empty table is {}.
 * Any other metatable is refused: what it does would be gone.
 * Doubles take the first of 15, 16 or 17 digits that reads back the same,
 * whatever the locale; one beyond 2^53 keeps a fraction or exponent, so that it
 * stays a double. Errors name the path, counted from 1: payload.items[3].price.
 */
#ifndef HOST_SCRIPT_JSON_CODEC_H
#define HOST_SCRIPT_JSON_CODEC_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <lua.h>

/** Makes the metatables of a state whose base library is open; call once,
 * before anything else, from protected code. */
void json_codec_register(lua_State *L);

/** Pushes the value of checked or unchecked text. INVALID (nothing pushed)
 * says why and where; `root` starts the path ("payload", "state"). May raise
 * only a memory error or what the count hook raises. */
enum status json_codec_decode(lua_State *L, struct text json, const char *root,
                              struct diag *diag) MUST_CHECK;

/** Appends the value at `index` as JSON. `root` starts the path of errors
 * ("payload", "state"). INVALID names the path; `out` is as before then. May
 * raise what json_codec_decode may, owns nothing when it does, and has then
 * appended a part. */
enum status json_codec_encode(lua_State *L, int index, const char *root,
                              struct buffer *out, struct diag *diag) MUST_CHECK;

/** The same of a tree: a table that is reached twice is refused, too. JSON
 * would make two tables of it, so what a script sees would differ by whether
 * the value has been written and read in between. */
enum status json_codec_encode_tree(lua_State *L, int index, const char *root,
                                   struct buffer *out,
                                   struct diag *diag) MUST_CHECK;

/* Functions of the Lua side. Each raises on bad input. */

/** moontide.array(t): tags t (or a new table) as an array. */
int json_codec_array(lua_State *L);
/** moontide.object(t): tags t (or a new table) as an object, so that an empty
 * one stays {} and one with number keys is refused. */
int json_codec_object(lua_State *L);
/** moontide.json.decode(text) -> value */
int json_codec_lua_decode(lua_State *L);
/** moontide.json.encode(value) -> text */
int json_codec_lua_encode(lua_State *L);

#endif
