/*
 * Declare build -- how the files that turn checked Lua tables into C read
 * them. Protected code only; strings and arrays are copied to the set's arena.
 * Nothing but script/declare*.c includes it.
 */
#ifndef HOST_SCRIPT_DECLARE_BUILD_H
#define HOST_SCRIPT_DECLARE_BUILD_H

#include "script/declare.h"

/** One declaration that is being read: its table lies at index `at`. */
struct declare_build {
    lua_State *L;
    struct declare_set *set;
    struct declaration *declaration; /* NULL: an event type */
    struct declare_code *code;       /* of the declaration */
    int at;
};

/** Raises "file:line: kind "name": message". Never returns. */
int declare_fail(const struct declare_build *b, const char *message);

/** A copy of the string at the top, which is popped; NULL data for nil. */
struct text declare_pop_text(const struct declare_build *b);

struct text declare_text(const struct declare_build *b, const char *key);
/** A list of texts; NULL and 0 for nil. */
const struct text *declare_texts(const struct declare_build *b, const char *key,
                                 size_t *count);
int64_t declare_integer(const struct declare_build *b, int at, const char *key);
bool declare_boolean(const struct declare_build *b, int at, const char *key);
/** Registry reference of a function, LUA_NOREF for nil. */
int declare_function(const struct declare_build *b, const char *key);

/** The list of fields at the top of the stack, which is popped; NULL and 0 for
 * nil. What lists, sets and records are made of comes along. */
const struct declaration_field *declare_fields(const struct declare_build *b,
                                               size_t *count);

#endif
