/*
 * Require -- what `require` means to a script: the modules compiled into the
 * program, the libraries it sees anyway, cjson, and files below the scripts
 * folder and the application's folder. Each is loaded once per state.
 */
#ifndef HOST_SCRIPT_REQUIRE_H
#define HOST_SCRIPT_REQUIRE_H

#include "script/state.h"

/** require(name) */
int require_module(lua_State *L);

/** The name of a file in messages: its real path, relative to the
 * application ("handlers/x.lua"). */
void require_chunk_name(const struct script_state *state, const char *path,
                        char *out, size_t size);

#endif
