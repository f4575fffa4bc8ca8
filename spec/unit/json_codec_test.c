/*
 * JSON codec: every rule that scenarios JS-02, JS-03, JS-05, JS-07 and JS-08
 * put on the way between JSON text and Lua values.
 */
#include "script/json_codec.h"

#include "base/json.h"
#include "script/json_number.h"

#include <lauxlib.h>
#include <lualib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int setup(void **state)
{
    lua_State *L = luaL_newstate();

    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 0);
    lua_pushcfunction(L, luaopen_table);
    lua_call(L, 0, 0);
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 0);
    json_codec_register(L);
    lua_register(L, "array", json_codec_array);
    lua_register(L, "object", json_codec_object);
    lua_register(L, "decode", json_codec_lua_decode);
    lua_register(L, "encode", json_codec_lua_encode);
    lua_pushlightuserdata(L, NULL);
    lua_setglobal(L, "null");
    lua_settop(L, 0);
    *state = L;
    return 0;
}

static int teardown(void **state)
{
    lua_close(*state);
    return 0;
}

/* What `text` becomes by a decode and an encode, or the error's message. */
static void expect_round_trip(lua_State *L, const char *text,
                              const char *wanted)
{
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;
    enum status status = json_codec_decode(L, text_of(text), "payload", &diag);

    if (status == STATUS_OK) {
        assert_int_equal(lua_gettop(L), 1);
        status = json_codec_encode(L, -1, "payload", &out, &diag);
        assert_int_equal(lua_gettop(L), 1);
        lua_settop(L, 0);
    }
    assert_int_equal(lua_gettop(L), 0);
    if (status == STATUS_OK)
        assert_string_equal(buffer_text(&out).data, wanted);
    else
        assert_string_equal(diag.message, wanted);
    buffer_free(&out);
}

/* What the Lua expression becomes. */
static void expect_encoded(lua_State *L, const char *expression,
                           const char *wanted)
{
    char chunk[512];
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    snprintf(chunk, sizeof(chunk), "return %s", expression);
    assert_int_equal(luaL_loadstring(L, chunk), 0);
    lua_call(L, 0, 1);
    buffer_append_string(&out, "before");
    if (json_codec_encode(L, 1, "state", &out, &diag) == STATUS_OK) {
        assert_string_equal(out.data + strlen("before"), wanted);
    } else {
        assert_string_equal(diag.message, wanted);
        assert_string_equal(out.data, "before");
    }
    assert_int_equal(lua_gettop(L), 1);
    lua_settop(L, 0);
    buffer_free(&out);
}

/* Runs a chunk and leaves its values from index 1 on. */
static void run(lua_State *L, const char *chunk)
{
    assert_int_equal(luaL_loadstring(L, chunk), 0);
    lua_call(L, 0, LUA_MULTRET);
}

static void expect_refused(lua_State *L, const char *text, size_t len)
{
    struct diag diag;

    if (json_codec_decode(L, (struct text){text, len}, "payload", &diag) !=
        STATUS_INVALID)
        fail_msg("accepted: %s", text);
    assert_int_equal(lua_gettop(L), 0);
}

static void empty_array_and_empty_object_stay_apart(void **state)
{
    static const char text[] = "{\"a\":[],\"b\":{},\"c\":[[],{}],\"d\":[{}]}";

    expect_round_trip(*state, text, text);
    expect_encoded(*state, "{}", "{}");
    expect_encoded(*state, "array()", "[]");
    expect_encoded(*state, "object()", "{}");
    expect_encoded(*state, "{{}, array{}}", "[{},[]]");
}

static void an_emptied_array_stays_an_array(void **state)
{
    expect_encoded(*state,
                   "(function() local v = decode('{\"a\":[1,2]}') "
                   "table.remove(v.a) table.remove(v.a) return v end)()",
                   "{\"a\":[]}");
    expect_encoded(
        *state, "(function() local v = {1} v[1] = nil return v end)()", "{}");
}

static void null_keeps_its_place(void **state)
{
    lua_State *L = *state;

    expect_round_trip(L, "{\"a\":null,\"b\":[1,null,3,null]}",
                      "{\"a\":null,\"b\":[1,null,3,null]}");
    run(L, "return #decode('[1,null,3,null]'), decode('null') == null");
    assert_int_equal(lua_tointeger(L, 1), 4);
    assert_true(lua_toboolean(L, 2));
    lua_settop(L, 0);
}

static void numbers_survive(void **state)
{
    static const char *const cases[][2] = {
        {"0", "0"},
        {"-0", "-0"},
        {"-1", "-1"},
        {"0.1", "0.1"},
        {"1.5", "1.5"},
        {"1e-7", "1e-07"},
        {"0.3", "0.3"},
        {"100.25", "100.25"},
        {"5e-324", "4.94065645841247e-324"},
        {"1e+300", "1e+300"},
        {"1.0", "1"},
        {"1e2", "100"},
        {"1E+2", "100"},
        {"12.50", "12.5"},
        {"123456789012345", "123456789012345"},
        {"9007199254740992", "9007199254740992"},
        {"-9007199254740992", "-9007199254740992"},
        {"9007199254740993", "9007199254740993"},
        {"-9007199254740993", "-9007199254740993"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9007199254740994.0", "9007199254740994.0"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"0.1000000000000000055511151231257827", "0.1"},
        {"2.2250738585072014e-308", "2.2250738585072014e-308"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"1e-400", "0"},
        {"1e400", "payload: the number 1e400 does not fit into a double; write "
                  "such values as text"},
        {"[1,{\"n\":9223372036854775808}]",
         "payload[2].n: the integer 9223372036854775808 does not fit into 64 "
         "bits; write such values as text"},
        {"-9223372036854775809",
         "payload: the integer -9223372036854775809 does not fit into 64 bits; "
         "write such values as text"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_round_trip(*state, cases[i][0], cases[i][1]);
}

/* xorshift: the same doubles on every machine. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void every_double_reads_back_the_same(void **state)
{
    lua_State *L = *state;
    uint64_t seed = 88172645463325252U;
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    for (int i = 0; i < 20000; i++) {
        union {
            uint64_t bits;
            double number;
        } wanted = {.bits = next_random(&seed)};

        if (i % 3 == 1)
            wanted.number = (double)(int64_t)wanted.bits / 1e6;
        buffer_clear(&out);
        if (!json_number_write(&out, wanted.number))
            continue; /* NaN or infinite */
        assert_int_equal(
            json_codec_decode(L, buffer_text(&out), "value", &diag), STATUS_OK);
        assert_int_equal(lua_type(L, 1), LUA_TNUMBER);
        assert_true(lua_tonumber(L, 1) == wanted.number);
        lua_settop(L, 0);
    }
    buffer_free(&out);
}

static void large_integers_are_int64_values(void **state)
{
    lua_State *L = *state;

    run(L, "local v = decode('9007199254740993')\n"
           "return type(v), tostring(v), encode(v + 1LL), encode(5LL)");
    assert_string_equal(lua_tostring(L, 1), "cdata");
    assert_string_equal(lua_tostring(L, 2), "9007199254740993LL");
    assert_string_equal(lua_tostring(L, 3), "9007199254740994");
    assert_string_equal(lua_tostring(L, 4), "5");
    lua_settop(L, 0);
    expect_encoded(L, "18446744073709551615ULL",
                   "state: an unsigned integer beyond 64 signed bits");
    expect_encoded(L, "{a = 1i}",
                   "state.a: a cdata value cannot be written as JSON");
}

static void the_ffi_library_stays_hidden(void **state)
{
    lua_State *L = *state;

    lua_getglobal(L, "ffi");
    assert_true(lua_isnil(L, -1));
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "ffi");
    assert_true(lua_isnil(L, -1));
    lua_settop(L, 0);
}

static void what_json_cannot_say_is_an_error_with_a_path(void **state)
{
    lua_State *L = *state;

    expect_encoded(L, "{items = {1, 2, {price = 0/0}}}",
                   "state.items[3].price: NaN cannot be written as JSON");
    expect_encoded(L, "{a = 1/0}",
                   "state.a: an infinite number cannot be written as JSON");
    expect_encoded(L, "{a = -1/0}",
                   "state.a: an infinite number cannot be written as JSON");
    expect_encoded(L, "{['a b'] = print}",
                   "state[\"a b\"]: a function cannot be written as JSON");
    expect_encoded(L, "{a = '\\255'}",
                   "state.a: a string that is not valid UTF-8");
    expect_encoded(L, "{['\\255'] = 1}",
                   "state[\"?\"]: a key that is not valid UTF-8");
    expect_encoded(L,
                   "(function() local t = {} t.t = {t} return {u = t} end)()",
                   "state.u.t[1]: a table that contains itself");
}

static void one_table_may_appear_twice(void **state)
{
    expect_encoded(*state,
                   "(function() local t = {1} return {a = t, b = t} end)()",
                   "{\"a\":[1],\"b\":[1]}");
}

static void sparse_and_mixed_tables_are_errors(void **state)
{
    static const char *const cases[][2] = {
        {"{x = {[1] = 1, [1000000000] = 2}}",
         "state.x: an array with holes: 2 items, the last of them at "
         "[1000000000]"},
        {"{1, nil, 3}",
         "state: an array with holes: 2 items, the last of them at [3]"},
        {"{[1.5] = 1}", "state: an array with the key [1.5]"},
        {"{[0] = 1}", "state: an array with the key [0]"},
        {"{[-1] = 1}", "state: an array with the key [-1]"},
        {"{[1e300] = 1}", "state: an array with the key [1e+300]"},
        {"{[true] = 1}", "state: an object with a key that is a boolean"},
        {"{1, 2, a = 2}", "state: an array with a key that is a string"},
        {"array{1, a = 2}", "state: an array with a key that is a string"},
        {"object{1}", "state: an object with the number key [1]; keys must be "
                      "strings"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_encoded(*state, cases[i][0], cases[i][1]);
}

static void number_and_text_keys_never_merge(void **state)
{
    lua_State *L = *state;
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    run(L, "return {[1] = 1, ['1'] = 2}");
    assert_int_equal(json_codec_encode(L, 1, "state", &out, &diag),
                     STATUS_INVALID);
    lua_settop(L, 0);
    buffer_free(&out);
}

static void keys_come_sorted_by_bytes(void **state)
{
    struct buffer wanted = BUFFER_EMPTY;

    expect_encoded(*state, "{b = 1, a = 2, B = 3, ab = 4, [''] = 5}",
                   "{\"\":5,\"B\":3,\"a\":2,\"ab\":4,\"b\":1}");
    /* more members than are kept on the Lua stack */
    for (int i = 101; i <= 140; i++)
        buffer_printf(&wanted, "%s\"k%d\":%d", i == 101 ? "{" : ",", i, i);
    buffer_append_string(&wanted, "}");
    expect_encoded(*state,
                   "(function() local t = {} for i = 140, 101, -1 do "
                   "t['k' .. i] = i end return t end)()",
                   wanted.data);
    buffer_free(&wanted);
}

static void strings_keep_every_character(void **state)
{
    lua_State *L = *state;

    expect_round_trip(L, "\"\\u0000\"", "\"\\u0000\"");
    expect_round_trip(L, "\"a\\\"b\\\\c\\/d\"", "\"a\\\"b\\\\c/d\"");
    expect_round_trip(L, "\"\\u20ac \\ud83d\\ude00\"",
                      "\"\xe2\x82\xac \xf0\x9f\x98\x80\"");
    expect_round_trip(L, "{\"\xf0\x9f\x98\x80\":\"gr\xc3\xbc\xc3\x9f\"}",
                      "{\"\xf0\x9f\x98\x80\":\"gr\xc3\xbc\xc3\x9f\"}");
    run(L, "return decode('\"a\\\\u0000b\"')");
    assert_int_equal(lua_objlen(L, 1), 3);
    lua_settop(L, 0);
}

static void a_long_escaped_string_is_whole(void **state)
{
    lua_State *L = *state;
    struct buffer text = BUFFER_EMPTY;
    struct diag diag;

    buffer_append_char(&text, '"');
    for (int i = 0; i < 5000; i++)
        buffer_append_string(&text, "\\n\xc3\xa4");
    buffer_append_char(&text, '"');
    assert_int_equal(json_codec_decode(L, buffer_text(&text), "v", &diag),
                     STATUS_OK);
    assert_int_equal(lua_gettop(L), 1);
    assert_int_equal(lua_objlen(L, 1), 15000);
    lua_settop(L, 0);
    buffer_free(&text);
}

static void bad_text_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u123g\"",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "Infinity",
        "-Infinity",
        "tru",
        "nul",
        "falsey",
        "1 2",
        "[1]]",
        "'a'",
        "\"\t\"",
        "\"\n\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "{\"\xff\":1}",
        "// 1\n1",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_refused(*state, bad[i], strlen(bad[i]));
    expect_refused(*state, "\"a\0b\"", 5);
    expect_refused(*state, "1\0", 2);
}

static void errors_say_where(void **state)
{
    expect_round_trip(*state, "{\"items\":[1,{\"price\":1.}]}",
                      "payload.items[2].price: bad number at byte 21");
    expect_round_trip(*state, "[1 2]",
                      "payload: expected , or ] in an array at byte 3");
    expect_round_trip(*state, "{\"a\":{\"b\":tru}}",
                      "payload.a.b: expected a value at byte 10");
}

static void nesting_is_bounded(void **state)
{
    lua_State *L = *state;
    struct buffer text = BUFFER_EMPTY;

    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buffer_append_char(&text, '[');
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buffer_append_char(&text, ']');
    expect_round_trip(L, text.data, text.data);
    buffer_clear(&text);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buffer_append_string(&text, "{\"a\":");
    buffer_append_char(&text, '1');
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buffer_append_char(&text, '}');
    expect_round_trip(L, text.data, text.data);
    buffer_clear(&text);
    for (int i = 0; i < 100000; i++)
        buffer_append_char(&text, '[');
    expect_round_trip(L, text.data, "payload: nested deeper than 512 levels");
    buffer_free(&text);
    expect_encoded(L,
                   "(function() local t = {} for _ = 1, 600 do t = {t} end "
                   "return t end)()",
                   "state: nested deeper than 512 levels");
}

static void of_a_repeated_name_the_last_counts(void **state)
{
    expect_round_trip(*state, "{\"a\":1,\"a\":2}", "{\"a\":2}");
}

static void white_space_means_nothing(void **state)
{
    expect_round_trip(*state, " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } ",
                      "{\"a\":[1,2],\"b\":{}}");
}

static void tags_cannot_be_changed_by_scripts(void **state)
{
    lua_State *L = *state;

    run(L, "return getmetatable(array()), "
           "(pcall(setmetatable, array(), {})), encode(array())");
    assert_string_equal(lua_tostring(L, 1), "moontide.array");
    assert_false(lua_toboolean(L, 2));
    assert_string_equal(lua_tostring(L, 3), "[]");
    lua_settop(L, 0);
}

/* An allocator that fails once `left` is down to zero; negative: never. */
static void *failing_alloc(void *data, void *block, size_t old, size_t size)
{
    long *left = data;

    (void)old;
    if (size == 0) {
        free(block);
        return NULL;
    }
    if (*left == 0)
        return NULL;
    if (*left > 0)
        (*left)--;
    return realloc(block, size);
}

static const char SAMPLE[] = "{\"a\":[1,9007199254740993,\"\\n\"],\"b\":{}}";

static int decode_and_encode(lua_State *L)
{
    struct buffer *out = lua_touserdata(L, 1);
    struct diag diag;

    if (json_codec_decode(L, text_of(SAMPLE), "v", &diag) != STATUS_OK ||
        json_codec_encode(L, -1, "v", out, &diag) != STATUS_OK)
        return luaL_error(L, "%s", diag.message);
    return 0;
}

static void a_memory_error_leaks_nothing_and_the_state_lives(void **state)
{
    long left = -1;
    lua_State *L = lua_newstate(failing_alloc, &left);
    struct buffer out = BUFFER_EMPTY;
    int raised = 0;

    (void)state;
    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 0);
    json_codec_register(L);
    for (long n = 0; n < 50; n++) {
        buffer_clear(&out);
        lua_gc(L, LUA_GCCOLLECT, 0);
        left = n;
        raised += lua_cpcall(L, decode_and_encode, &out) == LUA_ERRMEM;
        left = -1;
        lua_settop(L, 0);
    }
    assert_true(raised > 5);
    buffer_clear(&out);
    assert_int_equal(lua_cpcall(L, decode_and_encode, &out), 0);
    assert_string_equal(out.data, SAMPLE);
    buffer_free(&out);
    lua_close(L);
}

/* What the Lua expression becomes as a tree. */
static void expect_tree(lua_State *L, const char *expression,
                        const char *wanted)
{
    char chunk[1024];
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    snprintf(chunk, sizeof(chunk), "return (function() %s end)()", expression);
    assert_int_equal(luaL_loadstring(L, chunk), 0);
    lua_call(L, 0, 1);
    buffer_append_string(&out, "before");
    if (json_codec_encode_tree(L, 1, "state", &out, &diag) == STATUS_OK) {
        if (wanted != NULL)
            assert_string_equal(out.data + strlen("before"), wanted);
    } else {
        assert_string_equal(diag.message, wanted != NULL ? wanted : "");
        assert_string_equal(out.data, "before");
    }
    assert_int_equal(lua_gettop(L), 1);
    lua_settop(L, 0);
    buffer_free(&out);
}

static void a_metatable_is_refused_with_its_path(void **state)
{
    lua_State *L = *state;

    run(L, "mt = {__index = {n = 1}}");
    expect_encoded(L, "setmetatable({n = 1}, {})",
                   "state has a metatable, which JSON cannot keep");
    expect_encoded(L, "{d = {{}, setmetatable({}, mt)}}",
                   "state.d[2] has a metatable, which JSON cannot keep");
    expect_tree(L, "return {d = setmetatable({}, mt)}",
                "state.d has a metatable, which JSON cannot keep");
    expect_tree(L, "return {a = array{}, o = object{}}", "{\"a\":[],\"o\":{}}");
}

static void a_tree_reaches_each_table_once(void **state)
{
    lua_State *L = *state;

    expect_tree(L, "local t = {} return {a = t, b = t}",
                "state.b is the same table as state.a; copy it");
    expect_tree(L, "local t = {1} return {z = t, a = {{}, {x = t}}}",
                "state.z is the same table as state.a[2].x; copy it");
    expect_tree(L, "local t = {} return {t, 1, t}",
                "state[3] is the same table as state[1]; copy it");
    expect_tree(L, "local t = {} t.me = {t} return t",
                "state.me[1]: a table that contains itself");
    expect_tree(L, "return {a = {1}, b = {1}, c = {}, d = {}}",
                "{\"a\":[1],\"b\":[1],\"c\":{},\"d\":{}}");
    expect_tree(L, "local p = decode('{\"a\":[1]}') return {p = p, q = p.a}",
                "state.q is the same table as state.p.a; copy it");
    expect_tree(L, "return {last = decode('{\"a\":[1,{}]}')}",
                "{\"last\":{\"a\":[1,{}]}}");
}

static void a_tree_may_have_any_number_of_tables(void **state)
{
    static const char many[] =
        "local t = {} for i = 1, %d do t[i] = {{i}} end %sreturn t";
    static const int counts[] = {15, 16, 17, 31, 32, 33, 64, 1000, 20000};
    lua_State *L = *state;
    char chunk[512], wanted[128];

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (int at = 1; at < counts[i]; at += counts[i] / 8 + 1) {
            char alias[64];

            snprintf(alias, sizeof(alias), "t[#t + 1] = t[%d][1] ", at);
            snprintf(chunk, sizeof(chunk), many, counts[i], alias);
            snprintf(wanted, sizeof(wanted),
                     "state[%d] is the same table as state[%d][1]; copy it",
                     counts[i] + 1, at);
            expect_tree(L, chunk, wanted);
        }
        snprintf(chunk, sizeof(chunk), many, counts[i], "");
        expect_tree(L, chunk, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_metatable_is_refused_with_its_path),
        cmocka_unit_test(a_tree_reaches_each_table_once),
        cmocka_unit_test(a_tree_may_have_any_number_of_tables),
        cmocka_unit_test(empty_array_and_empty_object_stay_apart),
        cmocka_unit_test(an_emptied_array_stays_an_array),
        cmocka_unit_test(null_keeps_its_place),
        cmocka_unit_test(numbers_survive),
        cmocka_unit_test(every_double_reads_back_the_same),
        cmocka_unit_test(large_integers_are_int64_values),
        cmocka_unit_test(the_ffi_library_stays_hidden),
        cmocka_unit_test(what_json_cannot_say_is_an_error_with_a_path),
        cmocka_unit_test(one_table_may_appear_twice),
        cmocka_unit_test(sparse_and_mixed_tables_are_errors),
        cmocka_unit_test(number_and_text_keys_never_merge),
        cmocka_unit_test(keys_come_sorted_by_bytes),
        cmocka_unit_test(strings_keep_every_character),
        cmocka_unit_test(a_long_escaped_string_is_whole),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(of_a_repeated_name_the_last_counts),
        cmocka_unit_test(white_space_means_nothing),
        cmocka_unit_test(tags_cannot_be_changed_by_scripts),
        cmocka_unit_test(a_memory_error_leaks_nothing_and_the_state_lives),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
