#include "script/lua_token.h"

#include "base/utf8.h"

#include <stdint.h>

/* --- characters, as LuaJIT classes them: bytes above 127 make names --------
 */

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_name(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '_' || c >= 0x80;
}

static bool is_line_end(int c)
{
    return c == '\n' || c == '\r';
}

static bool is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The byte `ahead` of the current one, -1 behind the end. */
static int peek(const struct lua_lexer *lexer, size_t ahead)
{
    if (lexer->source.len - lexer->at <= ahead)
        return -1;
    return (unsigned char)lexer->source.data[lexer->at + ahead];
}

/* \n, \r, \r\n and \n\r are one end of a line each. */
static void skip_line_end(struct lua_lexer *lexer)
{
    int first = peek(lexer, 0);
    int second = peek(lexer, 1);

    lexer->at += is_line_end(second) && second != first ? 2 : 1;
    lexer->line++;
}

/* --- long brackets
 * ---------------------------------------------------------------- */

/* The level of the long bracket that opens here, -1: none does. */
static int long_level(const struct lua_lexer *lexer)
{
    int level = 0;

    if (peek(lexer, 0) != '[')
        return -1;
    while (peek(lexer, (size_t)level + 1) == '=')
        level++;
    return peek(lexer, (size_t)level + 1) == '[' ? level : -1;
}

static bool closes(const struct lua_lexer *lexer, int level)
{
    if (peek(lexer, 0) != ']' || peek(lexer, (size_t)level + 1) != ']')
        return false;
    for (int i = 1; i <= level; i++)
        if (peek(lexer, (size_t)i) != '=')
            return false;
    return true;
}

/* Reads a long bracket; its ends of lines count as \n. False: never closed. */
static bool read_long(struct lua_lexer *lexer, int level, struct buffer *value)
{
    lexer->at += (size_t)level + 2;
    if (is_line_end(peek(lexer, 0)))
        skip_line_end(lexer);
    while (peek(lexer, 0) >= 0) {
        if (closes(lexer, level)) {
            lexer->at += (size_t)level + 2;
            return true;
        }
        if (is_line_end(peek(lexer, 0))) {
            skip_line_end(lexer);
            if (value != NULL)
                buffer_append_char(value, '\n');
            continue;
        }
        if (value != NULL)
            buffer_append_char(value, lexer->source.data[lexer->at]);
        lexer->at++;
    }
    return false;
}

static void skip_comment(struct lua_lexer *lexer)
{
    int level;

    lexer->at += 2;
    level = long_level(lexer);
    if (level >= 0) {
        (void)read_long(lexer, level, NULL);
        return;
    }
    while (peek(lexer, 0) >= 0 && !is_line_end(peek(lexer, 0)))
        lexer->at++;
}

/* A byte order mark and a first line for the shell, as the loader does. */
static void skip_head(struct lua_lexer *lexer)
{
    if (peek(lexer, 0) == 0xef && peek(lexer, 1) == 0xbb &&
        peek(lexer, 2) == 0xbf)
        lexer->at += 3;
    if (peek(lexer, 0) != '#')
        return;
    while (peek(lexer, 0) >= 0 && !is_line_end(peek(lexer, 0)))
        lexer->at++;
}

static void skip_space(struct lua_lexer *lexer)
{
    if (lexer->at == 0)
        skip_head(lexer);
    for (;;) {
        int c = peek(lexer, 0);

        if (is_line_end(c))
            skip_line_end(lexer);
        else if (is_space(c))
            lexer->at++;
        else if (c == '-' && peek(lexer, 1) == '-')
            skip_comment(lexer);
        else
            return;
    }
}

/* --- strings
 * ---------------------------------------------------------------------- */

/* \xXX, \u{...} and \ddd; false: none of these is well-formed here. The
 * backslash is passed already. */
static bool read_hex(struct lua_lexer *lexer)
{
    int high = hex_value(peek(lexer, 1));
    int low = high < 0 ? -1 : hex_value(peek(lexer, 2));

    if (low < 0)
        return false;
    buffer_append_char(&lexer->value, (char)(high * 16 + low));
    lexer->at += 3;
    return true;
}

static bool read_unicode(struct lua_lexer *lexer)
{
    char bytes[4];
    uint32_t code = 0;
    size_t ahead = 2;

    if (peek(lexer, 1) != '{' || hex_value(peek(lexer, 2)) < 0)
        return false;
    for (; hex_value(peek(lexer, ahead)) >= 0; ahead++) {
        code = code * 16 + (uint32_t)hex_value(peek(lexer, ahead));
        if (code > 0x10ffff)
            return false;
    }
    if (peek(lexer, ahead) != '}')
        return false;
    buffer_append(&lexer->value, bytes, utf8_encode(code, bytes));
    lexer->at += ahead + 1;
    return true;
}

static bool read_decimal(struct lua_lexer *lexer)
{
    int value = 0;

    for (int i = 0; i < 3 && is_digit(peek(lexer, 0)); i++) {
        value = value * 10 + peek(lexer, 0) - '0';
        lexer->at++;
    }
    buffer_append_char(&lexer->value, (char)value);
    return value <= 255;
}

static bool read_escape(struct lua_lexer *lexer)
{
    static const char from[] = "abfnrtv\\\"'";
    static const char to[] = "\a\b\f\n\r\t\v\\\"'";
    const char *found;
    int c;

    lexer->at++;
    c = peek(lexer, 0);
    if (c < 0)
        return false;
    if (is_digit(c))
        return read_decimal(lexer);
    if (c == 'x')
        return read_hex(lexer);
    if (c == 'u')
        return read_unicode(lexer);
    if (is_line_end(c)) {
        skip_line_end(lexer);
        buffer_append_char(&lexer->value, '\n');
        return true;
    }
    if (c == 'z') {
        lexer->at++;
        while (is_space(peek(lexer, 0))) {
            if (is_line_end(peek(lexer, 0)))
                skip_line_end(lexer);
            else
                lexer->at++;
        }
        return true;
    }
    found = c == '\0' ? NULL : strchr(from, c);
    if (found == NULL)
        return false;
    buffer_append_char(&lexer->value, to[found - from]);
    lexer->at++;
    return true;
}

static bool read_string(struct lua_lexer *lexer)
{
    int quote = peek(lexer, 0);

    lexer->at++;
    for (;;) {
        int c = peek(lexer, 0);

        if (c == quote) {
            lexer->at++;
            return true;
        }
        if (c < 0 || is_line_end(c))
            return false;
        if (c == '\\') {
            if (!read_escape(lexer))
                return false;
            continue;
        }
        buffer_append_char(&lexer->value, (char)c);
        lexer->at++;
    }
}

/* --- tokens
 * ----------------------------------------------------------------------- */

/* All that may belong to a number, as LuaJIT takes it together: 1e-5, 0x1p+3,
 * 1LL, 0xffULL, 3i. */
static void skip_number(struct lua_lexer *lexer)
{
    int exponent = 'e';
    int last = peek(lexer, 0);

    if (last == '0' && (peek(lexer, 1) | 0x20) == 'x')
        exponent = 'p';
    for (;;) {
        int c = peek(lexer, 0);

        if (c < 0 || (!is_name(c) && c != '.' &&
                      !((c == '+' || c == '-') && (last | 0x20) == exponent)))
            return;
        last = c;
        lexer->at++;
    }
}

static size_t symbol_length(const struct lua_lexer *lexer)
{
    static const char *const symbols[] = {
        "...", "..", "==", "~=", "<=", ">=", "::"};
    struct text rest = {lexer->source.data + lexer->at,
                        lexer->source.len - lexer->at};

    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        size_t len = strlen(symbols[i]);

        if (rest.len >= len && memcmp(rest.data, symbols[i], len) == 0)
            return len;
    }
    return 1;
}

static enum lua_token_kind read_quoted(struct lua_lexer *lexer, int level)
{
    bool good;

    buffer_clear(&lexer->value);
    good = level >= 0 ? read_long(lexer, level, &lexer->value)
                      : read_string(lexer);
    return good ? LUA_TOKEN_STRING : LUA_TOKEN_OTHER;
}

void lua_token_next(struct lua_lexer *lexer, struct lua_token *token)
{
    static const char symbols[] = "+-*/%^#<>=~(){}[];:,.";
    int c, level;

    skip_space(lexer);
    *token = (struct lua_token){.line = lexer->line, .from = lexer->at};
    c = peek(lexer, 0);
    level = long_level(lexer);
    if (c < 0) {
        token->kind = LUA_TOKEN_END;
    } else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) {
        token->kind = LUA_TOKEN_NUMBER;
        skip_number(lexer);
    } else if (is_name(c)) {
        token->kind = LUA_TOKEN_NAME;
        while (peek(lexer, 0) >= 0 && is_name(peek(lexer, 0)))
            lexer->at++;
    } else if (c == '"' || c == '\'' || level >= 0) {
        token->kind = read_quoted(lexer, level);
    } else {
        token->kind = c != '\0' && strchr(symbols, c) != NULL ? LUA_TOKEN_SYMBOL
                                                              : LUA_TOKEN_OTHER;
        lexer->at += symbol_length(lexer);
    }
    token->to = lexer->at;
    if (token->kind == LUA_TOKEN_STRING)
        token->text = buffer_text(&lexer->value);
    else if (token->to > token->from)
        token->text = (struct text){lexer->source.data + token->from,
                                    token->to - token->from};
}

void lua_lexer_free(struct lua_lexer *lexer)
{
    buffer_free(&lexer->value);
}
