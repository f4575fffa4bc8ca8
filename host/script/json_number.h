/*
 * JSON number -- numbers of Lua as JSON text that reads back the same.
 */
#ifndef HOST_SCRIPT_JSON_NUMBER_H
#define HOST_SCRIPT_JSON_NUMBER_H

#include "base/buffer.h"

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

void json_number_write_integer(struct buffer *out, int64_t value);

/** False (nothing appended) for NaN and infinities. */
bool json_number_write(struct buffer *out, lua_Number number);

#endif
