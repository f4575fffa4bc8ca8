/*
 * Value -- Lua values as SQL parameters, as columns of declared fields, and
 * columns of results as Lua values. What cannot be kept exactly is refused.
 */
#ifndef HOST_SCRIPT_VALUE_H
#define HOST_SCRIPT_VALUE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "db/db.h"
#include "model/declaration.h"

#include <lua.h>

/**
 * A parameter: nil and moontide.null are NULL; an integral number up to 2^53
 * and int64 are integers; other finite numbers doubles; strings text, which
 * must be UTF-8 without NUL; moontide.bytes(s) bytes. The value borrows the
 * string. INVALID says what is wrong, without naming the parameter. May raise
 * a memory error.
 */
enum status value_parameter(lua_State *L, int index, struct db_value *value,
                            struct diag *diag) MUST_CHECK;

/**
 * The value of a declared field, strictly of its type; bytes are copied to
 * `arena`. Decimals are text and come out with the declared number of digits
 * behind the point; dates, times, timestamps and ids normalised; a bytes field
 * is base64 in the state and bytes in the column. INVALID as "field balance:
 * expected an integer, got \"12\" (a string)". May raise a memory error.
 */
enum status value_field(lua_State *L, int index,
                        const struct declaration_field *field,
                        struct arena *arena, struct db_value *value,
                        struct diag *diag) MUST_CHECK;

/** Whether the value is a revision, a whole number from 0 that a column holds,
 * and which. */
bool value_revision(lua_State *L, int index, int *revision);

/** Pushes a column of the row: NULL is nil, integers are exact (int64 beyond
 * 2^53), timestamps RFC 3339 text, ids text. May raise a memory error. */
void value_push_column(lua_State *L, struct db_rows *rows, size_t column);

/** What the value is, for messages: `"12" (a string)`, `nil`, `a table`. */
void value_describe(lua_State *L, int index, char *out, size_t size);

/** The name at `index` that a script asked for, as a message can show it; "?"
 * for what is no string. Pushes one value, which keeps it. */
const char *value_name(lua_State *L, int index);

#endif
