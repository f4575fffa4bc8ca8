/*
 * Require -- what `require` means to a script: the modules compiled into the
 * program, the libraries it sees anyway, cjson, and files below the scripts
 * folder and the application's folder. Each is loaded once per state.
 */
#ifndef HOST_SCRIPT_REQUIRE_H
#define HOST_SCRIPT_REQUIRE_H

#include "script/state.h"

#include <limits.h>

#define REQUIRE_SOURCE_LIMIT ((size_t)16 << 20) /* bytes of one file */

/** require(name) */
int require_module(lua_State *L);

/** The file of the application that require(name) would load; false when that
 * is no file of it. */
bool require_find(const struct script_state *state, const char *name,
                  char path[PATH_MAX]);

/** The name of a file in messages: its real path, relative to the
 * application ("handlers/x.lua"). */
void require_chunk_name(const struct script_state *state, const char *path,
                        char *out, size_t size);

#endif
