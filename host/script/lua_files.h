/*
 * Lua files -- the modules of lua/moontide, compiled into the program by
 * lua/embed.cmake. init.lua is "moontide", x.lua is "moontide.x".
 */
#ifndef HOST_SCRIPT_LUA_FILES_H
#define HOST_SCRIPT_LUA_FILES_H

#include <stddef.h>

struct lua_file {
    const char *module; /* "moontide.types" */
    const char *chunk;  /* "@moontide/types.lua" */
    const char *data;   /* source, byte for byte */
    size_t len;
};

extern const struct lua_file lua_files[];
extern const size_t lua_files_count;

#endif
