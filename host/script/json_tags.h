/*
 * JSON tags -- the metatables by which a state tells arrays and objects apart.
 */
#ifndef HOST_SCRIPT_JSON_TAGS_H
#define HOST_SCRIPT_JSON_TAGS_H

#include "base/buffer.h"
#include "script/table_set.h"

#include <lua.h>

/** One per state, kept in its registry. */
struct json_tags {
    const void *array; /* metatables, by address */
    const void *object;
    /* memory of the encoder, freed by __gc */
    struct buffer scratch;
    struct table_set seen;
};

/** Makes them. From protected code. */
void json_tags_register(lua_State *L);
struct json_tags *json_tags_get(lua_State *L);
/** Whether the table at `index` is tagged as an array, or can only be one: its
 * first item is there. */
bool json_tags_is_list(lua_State *L, int index);
/** Pushes the metatable of arrays, of objects. */
void json_tags_push_array(lua_State *L);
void json_tags_push_object(lua_State *L);

#endif
