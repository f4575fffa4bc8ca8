/*
 * Any bytes through the Lua tokens: each token lies behind the one before,
 * they all end, and what LuaJIT compiles has no token that is none.
 */
#include "script/lua_token.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Whether LuaJIT takes the text. */
static bool compiles(struct text source)
{
    lua_State *L = luaL_newstate();
    bool good;

    require(L != NULL);
    good = luaL_loadbufferx(L, source.data, source.len, "=x", "t") == 0;
    lua_close(L);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text source = {(const char *)data, size};
    struct lua_lexer lexer = {.source = source, .line = 1};
    struct lua_token token;
    size_t behind = 0, other = 0;
    int line = 1;

    for (lua_token_next(&lexer, &token); token.kind != LUA_TOKEN_END;
         lua_token_next(&lexer, &token)) {
        require(token.from >= behind && token.to > token.from);
        require(token.to <= size && token.line >= line);
        behind = token.to;
        line = token.line;
        other += token.kind == LUA_TOKEN_OTHER;
    }
    require(token.from <= size);
    if (other > 0)
        require(!compiles(source));
    lua_lexer_free(&lexer);
    return 0;
}
