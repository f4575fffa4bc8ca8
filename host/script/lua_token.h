/*
 * Lua token -- reads Lua text token by token, as LuaJIT does: without white
 * space and comments, with the values of strings instead of their spelling.
 *
 * Never fails: what is no Lua comes as LUA_TOKEN_OTHER, a byte or an unended
 * string at a time, so that any bytes have one sequence of tokens.
 */
#ifndef HOST_SCRIPT_LUA_TOKEN_H
#define HOST_SCRIPT_LUA_TOKEN_H

#include "base/buffer.h"

enum lua_token_kind {
    LUA_TOKEN_END,
    LUA_TOKEN_NAME, /* keywords, too */
    LUA_TOKEN_NUMBER,
    LUA_TOKEN_STRING,
    LUA_TOKEN_SYMBOL,
    LUA_TOKEN_OTHER,
};

struct lua_token {
    enum lua_token_kind kind;
    /** The text, or the value of a string; until the next token is read. */
    struct text text;
    int line;    /* where it begins */
    size_t from; /* its place in the source: bytes from..to-1 */
    size_t to;
};

/** Begins as {.source = text, .line = 1}; lua_lexer_free. */
struct lua_lexer {
    struct text source; /* borrowed */
    size_t at;
    int line;
    struct buffer value; /* of the string in hand */
};

/** Reads the next token; END at the end, again and again. */
void lua_token_next(struct lua_lexer *lexer, struct lua_token *token);
void lua_lexer_free(struct lua_lexer *lexer);

static inline bool lua_token_is(const struct lua_token *token, const char *word)
{
    return (token->kind == LUA_TOKEN_NAME || token->kind == LUA_TOKEN_SYMBOL) &&
           text_equal(token->text, text_of(word));
}

#endif
