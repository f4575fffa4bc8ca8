#include "base/json.h"
#include "base/json_member.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES(s)                                                               \
    {                                                                          \
        "" s, sizeof(s) - 1                                                    \
    } /* TEXT_LITERAL for static tables */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A copy without anything behind it, so that ASan sees a byte too many. */
static enum status check_exact(struct text t, size_t *offset, struct diag *diag)
{
    char *copy = malloc(t.len > 0 ? t.len : 1);
    enum status status;

    if (t.len > 0)
        memcpy(copy, t.data, t.len);
    status = json_check((struct text){copy, t.len}, offset, diag);
    free(copy);
    return status;
}

static void what_rfc_8259_allows_is_accepted(void **state)
{
    static const struct text good[] = {
        BYTES("null"),
        BYTES("true"),
        BYTES("false"),
        BYTES("0"),
        BYTES("-0"),
        BYTES("-1.5e+300"),
        BYTES("1E400"),
        BYTES("0.0"),
        BYTES("0e0"),
        BYTES("123456789012345678901234567890"),
        BYTES("\"\""),
        BYTES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\""),
        BYTES("\"\\u0000\""),
        BYTES("\"\\uD83C\\uDF19 \\ud83c\\udf19\""),
        BYTES("\"\x7F\xC2\x80 \xE2\x80\xA8 \xF0\x9F\x8C\x99\""),
        BYTES("\"\xEF\xBF\xBF\xF4\x8F\xBF\xBF\""),
        BYTES("[]"),
        BYTES("{}"),
        BYTES(" \t\r\n[ \t\r\n] \t\r\n"),
        BYTES("{ \"a\" : [ 1 , { } , [ ] , \"x\" ] , \"b\" : null }"),
        BYTES("{\"a\":1,\"a\":2}"),
        BYTES("{\"\":{}}"),
        BYTES("[[[[[[1]]]],{\"a\":[{}]}]]"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct diag diag;

        if (check_exact(good[i], NULL, &diag) != STATUS_OK)
            fail_msg("%s: %s", good[i].data, diag.message);
    }
}

static void everything_else_is_refused_with_place_and_reason(void **state)
{
    static const struct {
        struct text text;
        const char *message;
    } bad[] = {
        {BYTES(""), "expected a value at byte 0"},
        {BYTES("  "), "expected a value at byte 2"},
        {BYTES("tru"), "expected a value at byte 0"},
        {BYTES("True"), "expected a value at byte 0"},
        {BYTES("nullx"), "unexpected text after the value at byte 4"},
        {BYTES("NaN"), "expected a value at byte 0"},
        {BYTES("-Infinity"), "expected a digit at byte 1"},
        {BYTES("'a'"), "expected a value at byte 0"},
        {BYTES("+1"), "expected a value at byte 0"},
        {BYTES(".5"), "expected a value at byte 0"},
        {BYTES("-"), "expected a digit at byte 1"},
        {BYTES("01"), "a number must not start with 0 at byte 1"},
        {BYTES("-012"), "a number must not start with 0 at byte 2"},
        {BYTES("1."), "expected a digit at byte 2"},
        {BYTES("1.e5"), "expected a digit at byte 2"},
        {BYTES("1e"), "expected a digit at byte 2"},
        {BYTES("1e+"), "expected a digit at byte 3"},
        {BYTES("0x10"), "unexpected text after the value at byte 1"},
        {BYTES("1 2"), "unexpected text after the value at byte 2"},
        {BYTES("[1,]"), "expected a value at byte 3"},
        {BYTES("[,1]"), "expected a value at byte 1"},
        {BYTES("[1 2]"), "expected ',' or ']' at byte 3"},
        {BYTES("[1}"), "expected ',' or ']' at byte 2"},
        {BYTES("[1"), "expected ',' or ']' at byte 2"},
        {BYTES("["), "expected a value at byte 1"},
        {BYTES("]"), "expected a value at byte 0"},
        {BYTES("[]]"), "unexpected text after the value at byte 2"},
        {BYTES("{"), "expected a key in quotes or '}' at byte 1"},
        {BYTES("{a:1}"), "expected a key in quotes or '}' at byte 1"},
        {BYTES("{1:1}"), "expected a key in quotes or '}' at byte 1"},
        {BYTES("{\"a\"}"), "expected ':' at byte 4"},
        {BYTES("{\"a\":}"), "expected a value at byte 5"},
        {BYTES("{\"a\":1,}"), "expected a key in quotes at byte 7"},
        {BYTES("{\"a\":1 \"b\":2}"), "expected ',' or '}' at byte 7"},
        {BYTES("{\"a\":1]"), "expected ',' or '}' at byte 6"},
        {BYTES("{\"a\":12345678901"), "expected ',' or '}' at byte 16"},
        {BYTES("[1]//x"), "unexpected text after the value at byte 3"},
        {BYTES("\xEF\xBB\xBF[]"), "expected a value at byte 0"},
        {BYTES("[]\0"), "unexpected text after the value at byte 2"},
        {BYTES("[\f]"), "expected a value at byte 1"},
        {BYTES("\"abc"), "the string is not closed at byte 4"},
        {BYTES("\"abc\\"), "the string is not closed at byte 5"},
        {BYTES("\"\\x\""), "unknown escape at byte 1"},
        {BYTES("\"\\\0\""), "unknown escape at byte 1"},
        {BYTES("\"\\u12\""), "four hex digits must follow \\u at byte 1"},
        {BYTES("\"\\u12g4\""), "four hex digits must follow \\u at byte 1"},
        {BYTES("\"a\tb\""),
         "a control character must be written as an escape at byte 2"},
        {BYTES("\"a\0b\""),
         "a control character must be written as an escape at byte 2"},
        {BYTES("\"long enough \n\""),
         "a control character must be written as an escape at byte 13"},
        {BYTES("\"\\ud83c\""),
         "a high surrogate without a low one behind it at byte 1"},
        {BYTES("\"\\ud83c\\ud83c\""),
         "a high surrogate without a low one behind it at byte 1"},
        {BYTES("\"\\ud83cx\\udf19\""),
         "a high surrogate without a low one behind it at byte 1"},
        {BYTES("\"..\\udf19\""),
         "a low surrogate without a high one before it at byte 3"},
        {BYTES("\"\xFF\""), "no valid UTF-8 at byte 1"},
        {BYTES("\"\xC3\xA9\xC3\""), "no valid UTF-8 at byte 3"},
        {BYTES("\"abcdefghij\xC0\xAF\""), "no valid UTF-8 at byte 11"},
        {BYTES("\"\xED\xA0\x80\""), "no valid UTF-8 at byte 1"},
        {BYTES("\"\xF4\x90\x80\x80\""), "no valid UTF-8 at byte 1"},
        {BYTES("{\"\xFF\":1}"), "no valid UTF-8 at byte 2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        char place[64];
        struct diag diag = {.status = STATUS_OK};
        size_t offset = SIZE_MAX;

        if (check_exact(bad[i].text, &offset, &diag) != STATUS_INVALID)
            fail_msg("accepted: %s", bad[i].text.data);
        assert_string_equal(diag.message, bad[i].message);
        snprintf(place, sizeof(place), " at byte %zu", offset);
        assert_string_equal(diag.message + strlen(diag.message) - strlen(place),
                            place);
    }
}

static const char document[] =
    "{\"iban\":\"DE89 3704\",\"t\\u00e4g\":[1,-2.5e-3,true,false,null,{}],"
    "\"moon\":{\"a\":\"\\ud83c\\udf19\",\"b\":\"\xC3\xA9\xE6\x97\xA5\","
    "\"c\":[[],[\"\\\\\\\"\"]]},\"n\":12}";

static void no_truncation_of_a_document_is_accepted(void **state)
{
    size_t len = sizeof(document) - 1;

    (void)state;
    assert_int_equal(check_exact((struct text){document, len}, NULL, NULL),
                     STATUS_OK);
    for (size_t cut = 0; cut < len; cut++) {
        size_t offset;
        struct diag diag;

        if (check_exact((struct text){document, cut}, &offset, &diag) !=
            STATUS_INVALID)
            fail_msg("accepted at %zu", cut);
        assert_true(offset <= cut);
    }
}

/* The scan by words must find the byte wherever it stands in the word. */
static void a_bad_byte_is_found_at_every_place_of_a_string(void **state)
{
    static const char wrong[] = {'\0', '\n', 0x1F, (char)0x80, (char)0xFF};
    char text[42];

    (void)state;
    for (size_t at = 1; at < sizeof(text) - 1; at++) {
        for (size_t i = 0; i < sizeof(wrong); i++) {
            size_t offset;

            memset(text, ' ', sizeof(text));
            text[0] = text[sizeof(text) - 1] = '"';
            text[at] = wrong[i];
            assert_int_equal(
                check_exact((struct text){text, sizeof(text)}, &offset, NULL),
                STATUS_INVALID);
            assert_int_equal(offset, at);
        }
    }
}

static void nesting_is_accepted_down_to_the_limit(void **state)
{
    static const char *const kinds[][2] = {{"[", "]"}, {"{\"a\":", "}"}};

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
            struct buffer text = BUFFER_EMPTY;
            struct diag diag;
            enum status status;

            for (int i = 0; i < depth; i++)
                buffer_append_string(&text, kinds[k][0]);
            buffer_append_string(&text, k == 0 ? "" : "1");
            for (int i = 0; i < depth; i++)
                buffer_append_string(&text, kinds[k][1]);
            status = check_exact(buffer_text(&text), NULL, &diag);
            assert_int_equal(status, depth > JSON_DEPTH_MAX ? STATUS_INVALID
                                                            : STATUS_OK);
            if (status != STATUS_OK)
                assert_non_null(strstr(diag.message, "512 levels"));
            buffer_free(&text);
        }
    }
}

/* Each level remembers what it is, in words of 64 levels. */
static void mixed_nesting_closes_with_its_own_brackets(void **state)
{
    struct buffer text = BUFFER_EMPTY;

    (void)state;
    for (int i = 0; i < 200; i++)
        buffer_append_string(&text, i % 3 == 0 ? "[" : "{\"k\":");
    buffer_append_char(&text, '1');
    for (int i = 199; i >= 0; i--)
        buffer_append_char(&text, i % 3 == 0 ? ']' : '}');
    assert_int_equal(check_exact(buffer_text(&text), NULL, NULL), STATUS_OK);
    for (size_t i = text.len - 200; i < text.len; i++) {
        char right = text.data[i];
        size_t offset;

        text.data[i] = right == ']' ? '}' : ']';
        assert_int_equal(check_exact(buffer_text(&text), &offset, NULL),
                         STATUS_INVALID);
        assert_int_equal(offset, i);
        text.data[i] = right;
    }
    buffer_free(&text);
}

static void assert_text(struct text t, const char *expected)
{
    assert_int_equal(t.len, strlen(expected));
    assert_memory_equal(t.data, expected, t.len);
}

static void members_come_in_order_with_their_exact_bytes(void **state)
{
    static const struct {
        const char *key;
        enum json_kind kind;
        const char *raw;
    } expected[] = {
        {"a", JSON_NUMBER, "-1.50"},
        {"\xC3\xA9\"", JSON_STRING, "\"x,}\\\"\""},
        {"", JSON_OBJECT, "{ \"in\" : [ 1 , \"]}\" ] }"},
        {"list", JSON_ARRAY, "[[],{}]"},
        {"t", JSON_TRUE, "true"},
        {"f", JSON_FALSE, "false"},
        {"n", JSON_NULL, "null"},
        {"a", JSON_NUMBER, "2"},
    };
    struct text text = TEXT_LITERAL(
        " { \"a\" : -1.50 , \"\\u00e9\\\"\":\"x,}\\\"\", \"\" : "
        "{ \"in\" : [ 1 , \"]}\" ] },\"list\":[[],{}],\"t\":true,\n"
        "\"f\":false,\"n\":null ,\"a\":2}  ");
    struct buffer scratch = BUFFER_EMPTY;
    struct json_members members;
    struct json_value value;
    struct text key;

    (void)state;
    assert_int_equal(json_check(text, NULL, NULL), STATUS_OK);
    value = json_first(text);
    assert_int_equal(value.kind, JSON_OBJECT);
    assert_int_equal(value.raw.len, text.len - 3);
    members = json_members_of(value);
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(json_members_next(&members, &scratch, &key, &value));
        assert_text(key, expected[i].key);
        assert_int_equal(value.kind, expected[i].kind);
        assert_text(value.raw, expected[i].raw);
    }
    assert_false(json_members_next(&members, &scratch, &key, &value));
    assert_false(json_members_next(&members, &scratch, &key, &value));
    buffer_free(&scratch);
}

static void no_text_is_refused_and_reads_as_null(void **state)
{
    (void)state;
    assert_int_equal(json_check(TEXT_NONE, NULL, NULL), STATUS_INVALID);
    assert_int_equal(json_first(TEXT_NONE).kind, JSON_NULL);
}

static void an_empty_object_has_no_members(void **state)
{
    struct json_members members = json_members_of(
        json_first(TEXT_LITERAL("{ }")));
    struct buffer scratch = BUFFER_EMPTY;
    struct json_value value;
    struct text key;

    (void)state;
    assert_false(json_members_next(&members, &scratch, &key, &value));
    buffer_free(&scratch);
}

static void strings_are_decoded_behind_what_is_there(void **state)
{
    static const struct {
        const char *json;
        struct text expected;
    } cases[] = {
        {"\"\"", BYTES("")},
        {"\"plain\"", BYTES("plain")},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", BYTES("\"\\/\b\f\n\r\t")},
        {"\"a\\u0000b\"", BYTES("a\0b")},
        {"\"\\u00e9\\u65E5\\uD83C\\uDF19!\"",
         BYTES("\xC3\xA9\xE6\x97\xA5\xF0\x9F\x8C\x99!")},
        {"\"\xC3\xA9\\n\xE6\x97\xA5\"", BYTES("\xC3\xA9\n\xE6\x97\xA5")},
        {"\"\\uFFFF\\uD7FF\\uE000\"",
         BYTES("\xEF\xBF\xBF\xED\x9F\xBF\xEE\x80\x80")},
    };
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        buffer_clear(&out);
        buffer_append_char(&out, '>');
        json_decode_string(json_first(text_of(cases[i].json)), &out);
        assert_int_equal(out.len, cases[i].expected.len + 1);
        assert_memory_equal(out.data + 1, cases[i].expected.data, out.len - 1);
    }
    buffer_free(&out);
}

/* Every code point: written, checked, decoded, the same again. */
static void what_is_written_is_valid_and_comes_back(void **state)
{
    struct buffer json = BUFFER_EMPTY;
    struct buffer back = BUFFER_EMPTY;
    struct buffer text = BUFFER_EMPTY;

    (void)state;
    for (unsigned code = 0; code < 0x110000; code += code < 0x300 ? 1 : 101) {
        char escape[32];

        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        if (code < 0x10000)
            snprintf(escape, sizeof(escape), "\"\\u%04x\"", code);
        else
            snprintf(escape, sizeof(escape), "\"\\u%04x\\u%04x\"",
                     0xD7C0 + (code >> 10), 0xDC00 | (code & 0x3FF));
        json_decode_string(json_first(text_of(escape)), &text);
    }
    assert_true(text_utf8_valid(buffer_text(&text)));
    json_write_string(&json, buffer_text(&text));
    assert_int_equal(json_check(buffer_text(&json), NULL, NULL), STATUS_OK);
    json_decode_string(json_first(buffer_text(&json)), &back);
    assert_true(text_equal(buffer_text(&back), buffer_text(&text)));
    buffer_free(&json);
    buffer_free(&back);
    buffer_free(&text);
}

static void only_what_must_be_escaped_is(void **state)
{
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    json_write_string(&out, TEXT_LITERAL("\"\\/\b\f\n\r\t\x01\x1F\x7F\0"
                                         "\xC3\xA9"));
    assert_string_equal(out.data, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f"
                                  "\x7F\\u0000\xC3\xA9\"");
    buffer_clear(&out);
    json_write_string(&out, TEXT_NONE);
    assert_string_equal(out.data, "\"\"");
    buffer_free(&out);
}

static void keys_are_written_with_commas_between(void **state)
{
    struct buffer out = BUFFER_EMPTY;
    bool first = true;

    (void)state;
    json_write_key(&out, &first, "a\"b");
    buffer_append_char(&out, '1');
    json_write_key(&out, &first, "c");
    buffer_append_char(&out, '2');
    assert_string_equal(out.data, "\"a\\\"b\":1,\"c\":2");
    buffer_free(&out);
}

static void a_member_without_a_value_is_null(void **state)
{
    struct uuid id = {{0}};
    struct buffer out = BUFFER_EMPTY;
    bool first = true;

    (void)state;
    json_member_text(&out, &first, "a", TEXT_NONE);
    json_member_text(&out, &first, "b", TEXT_LITERAL(""));
    json_member_string(&out, &first, "c", NULL);
    json_member_int64_if(&out, &first, "d", false, 7);
    json_member_int64_if(&out, &first, "e", true, INT64_MIN);
    json_member_time(&out, &first, "f", 0);
    json_member_time_or_null(&out, &first, "g", 0);
    json_member_id(&out, &first, "h", NULL);
    json_member_id(&out, &first, "i", &id);
    json_member_raw(&out, &first, "j", TEXT_NONE);
    assert_string_equal(out.data,
                        "\"a\":null,\"b\":\"\",\"c\":null,\"d\":null,"
                        "\"e\":-9223372036854775808,"
                        "\"f\":\"1970-01-01T00:00:00.000000Z\",\"g\":null,"
                        "\"h\":null,"
                        "\"i\":\"00000000-0000-0000-0000-000000000000\","
                        "\"j\":null");
    buffer_free(&out);
}

static void a_document_that_is_no_json_becomes_a_string(void **state)
{
    struct buffer out = BUFFER_EMPTY;
    bool first = true;

    (void)state;
    json_member_document(&out, &first, "a", TEXT_LITERAL("{\"n\": 1}"));
    json_member_document(&out, &first, "b", TEXT_LITERAL("{\"n\": "));
    json_member_document(&out, &first, "c", TEXT_NONE);
    assert_string_equal(out.data, "\"a\":{\"n\": 1},\"b\":\"{\\\"n\\\": \","
                                  "\"c\":null");
    buffer_free(&out);
}

static void integers_are_exact_or_refused(void **state)
{
    static const int64_t good[] = {
        0, 1, -1, 42, INT64_C(9007199254740993), INT64_MAX, INT64_MIN};
    static const char *const bad[] = {
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "1.0",
        "1e2",
        "\"1\"",
        "null",
        "[1]",
    };
    int64_t value;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        char text[32];

        snprintf(text, sizeof(text), "%" PRId64, good[i]);
        assert_true(json_decode_int64(json_first(text_of(text)), &value));
        assert_true(value == good[i]);
    }
    assert_true(json_decode_int64(json_first(TEXT_LITERAL("-0")), &value));
    assert_true(value == 0);
    value = 42;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(json_decode_int64(json_first(text_of(bad[i])), &value));
    assert_true(value == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rfc_8259_allows_is_accepted),
        cmocka_unit_test(everything_else_is_refused_with_place_and_reason),
        cmocka_unit_test(no_truncation_of_a_document_is_accepted),
        cmocka_unit_test(a_bad_byte_is_found_at_every_place_of_a_string),
        cmocka_unit_test(nesting_is_accepted_down_to_the_limit),
        cmocka_unit_test(mixed_nesting_closes_with_its_own_brackets),
        cmocka_unit_test(members_come_in_order_with_their_exact_bytes),
        cmocka_unit_test(no_text_is_refused_and_reads_as_null),
        cmocka_unit_test(an_empty_object_has_no_members),
        cmocka_unit_test(strings_are_decoded_behind_what_is_there),
        cmocka_unit_test(what_is_written_is_valid_and_comes_back),
        cmocka_unit_test(only_what_must_be_escaped_is),
        cmocka_unit_test(keys_are_written_with_commas_between),
        cmocka_unit_test(a_member_without_a_value_is_null),
        cmocka_unit_test(a_document_that_is_no_json_becomes_a_string),
        cmocka_unit_test(integers_are_exact_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
