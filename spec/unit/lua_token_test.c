#include "script/lua_token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <lauxlib.h>

/* Tokens as text, each with its kind in front: "n:local n:x s:= N:1 ". */
static void read_all(struct text source, struct buffer *out)
{
    static const char *const kinds[] = {"", "n:", "N:", "S:", ":", "?:"};
    struct lua_lexer lexer = {.source = source, .line = 1};
    struct lua_token token;

    for (lua_token_next(&lexer, &token); token.kind != LUA_TOKEN_END;
         lua_token_next(&lexer, &token)) {
        buffer_append_string(out, kinds[token.kind]);
        buffer_append_text(out, token.text);
        buffer_append_char(out, ' ');
    }
    lua_lexer_free(&lexer);
}

static void expect(const char *source, const char *tokens)
{
    struct buffer out = BUFFER_EMPTY;

    read_all(text_of(source), &out);
    assert_string_equal(buffer_text(&out).data, tokens);
    buffer_free(&out);
}

static void white_space_and_comments_are_no_tokens(void **state)
{
    (void)state;
    expect("", "");
    expect("  \t\v\f\r\n", "");
    expect("a--b\nc", "n:a n:c ");
    expect("a--[[b\nc]]d", "n:a n:d ");
    expect("a--[==[b]] ]=] ]==]d", "n:a n:d ");
    expect("a--[=b\nc]=]d", "n:a n:c :] := :] n:d ");
    expect("a--[[ never closed", "n:a ");
    expect("--", "");
    expect("a - -b", "n:a :- :- n:b ");
}

static void a_shells_first_line_and_a_byte_order_mark_are_passed(void **state)
{
    (void)state;
    expect("#!/usr/bin/env lua\na", "n:a ");
    expect("\xEF\xBB\xBF#!x\na", "n:a ");
    expect("\xEF\xBB\xBF"
           "a",
           "n:a ");
    expect("a #b", "n:a :# n:b ");
}

static void symbols_are_taken_as_long_as_they_are(void **state)
{
    (void)state;
    expect("a...b..c.d", "n:a :... n:b :.. n:c :. n:d ");
    expect("a==b~=c<=d>=e<f>g=h", "n:a :== n:b :~= n:c :<= n:d :>= n:e :< "
                                  "n:f :> n:g := n:h ");
    expect("::again:: goto again", "::: n:again ::: n:goto n:again ");
    expect("a[b[1]]", "n:a :[ n:b :[ N:1 :] :] ");
    expect("\xC3\xA4_1 x", "n:\xC3\xA4_1 n:x ");
}

static void numbers_of_luajit_are_one_token(void **state)
{
    static const char *const numbers[] = {
        "0",       "12",    "3.25", ".5",     "5.",       "1e5",
        "1E+5",    "1e-5",  "0x1F", "0x.8p1", "0xA.8P-3", "1LL",
        "0xffULL", "42ull", "12i",  "1e3i",   "0b101",    "0x1p+4",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char source[64], tokens[64];

        snprintf(source, sizeof(source), "(%s)", numbers[i]);
        snprintf(tokens, sizeof(tokens), ":( N:%s :) ", numbers[i]);
        expect(source, tokens);
    }
    expect("1-2", "N:1 :- N:2 ");
    expect("0xe-1", "N:0xe :- N:1 ");
    expect("a.b.5", "n:a :. n:b N:.5 ");
}

/* What LuaJIT makes of a literal is what the token's text says. */
static void strings_have_the_value_that_luajit_gives_them(void **state)
{
    static const char *const literals[] = {
        "'a'",
        "\"a\"",
        "''",
        "[[a]]",
        "[==[a]]b]=]c]==]",
        "[[\na\r\nb\n\rc\rd]]",
        "[[\r\n\na]]",
        "'\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\\''",
        "'\\65\\066\\1232\\0x'",
        "'\\x41\\xfF'",
        "'\\u{20ac}\\u{1F600}\\u{41}\\u{0}'",
        "'a\\z  \n\t b'",
        "'a\\\nb\\\r\nc'",
        "'\xC3\xA4'",
        "'--no comment'",
        "'[[x]]'",
    };
    lua_State *L = luaL_newstate();

    (void)state;
    assert_non_null(L);
    for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
        struct lua_lexer lexer = {.source = text_of(literals[i]), .line = 1};
        struct lua_token token;
        char chunk[128];
        struct text value;

        snprintf(chunk, sizeof(chunk), "return %s", literals[i]);
        if (luaL_loadstring(L, chunk) != 0)
            fail_msg("%s", lua_tostring(L, -1));
        lua_call(L, 0, 1);
        value.data = lua_tolstring(L, -1, &value.len);
        lua_token_next(&lexer, &token);
        if (token.kind != LUA_TOKEN_STRING || !text_equal(token.text, value))
            fail_msg("%s is read as '" TEXT_FORMAT "'", literals[i],
                     TEXT_ARGS(token.text));
        lua_token_next(&lexer, &token);
        assert_int_equal(token.kind, LUA_TOKEN_END);
        lua_lexer_free(&lexer);
        lua_pop(L, 1);
    }
    lua_close(L);
}

static void what_is_no_lua_is_still_one_sequence(void **state)
{
    static const char *const broken[] = {
        "'open",   "'a\nb",  "'\\q'",   "'\\x4'", "'\\u{}'", "'\\u{110000}'",
        "'\\256'", "[[open", "[==[a]]", "'\\",    "@",       "a ! b",
        "'\\u{41",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct buffer out = BUFFER_EMPTY;

        read_all(text_of(broken[i]), &out);
        if (strstr(buffer_text(&out).data, "?:") == NULL)
            fail_msg("%s: %s", broken[i], out.data);
        buffer_free(&out);
    }
    expect("a\001b", "n:a ?:\001 n:b ");
}

static void lines_are_counted_as_luajit_does(void **state)
{
    struct lua_lexer lexer = {
        .source = TEXT_LITERAL(
            "a\nb\r\nc\n\rd\r\re 'x\\\ny' [[\n\n]] --[[\n]] f"),
        .line = 1,
    };
    static const int lines[] = {1, 2, 3, 4, 6, 6, 7, 10};
    struct lua_token token;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        lua_token_next(&lexer, &token);
        assert_int_equal(token.line, lines[i]);
    }
    lua_token_next(&lexer, &token);
    assert_int_equal(token.kind, LUA_TOKEN_END);
    lua_token_next(&lexer, &token);
    assert_int_equal(token.kind, LUA_TOKEN_END);
    lua_lexer_free(&lexer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_and_comments_are_no_tokens),
        cmocka_unit_test(a_shells_first_line_and_a_byte_order_mark_are_passed),
        cmocka_unit_test(symbols_are_taken_as_long_as_they_are),
        cmocka_unit_test(numbers_of_luajit_are_one_token),
        cmocka_unit_test(strings_have_the_value_that_luajit_gives_them),
        cmocka_unit_test(what_is_no_lua_is_still_one_sequence),
        cmocka_unit_test(lines_are_counted_as_luajit_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
