#include "base/text.h"

#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void every_code_point_is_valid_but_surrogates(void **state)
{
    char bytes[4];

    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        struct text t = {bytes, utf8_encode(code, bytes)};
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;

        if (text_utf8_valid(t) == surrogate)
            fail_msg("U+%04X", (unsigned)code);
        if (!surrogate && text_utf8_length(t) != 1)
            fail_msg("length of U+%04X", (unsigned)code);
    }
}

static void wrong_utf8_is_refused_at_every_distance(void **state)
{
    static const char *const wrong[] = {
        "\x80",             /* a tail alone */
        "\xC3",             /* a tail missing */
        "\xE6\x97",         /* a tail missing */
        "\xF0\x9F\x8C",     /* a tail missing */
        "\xC0\xAF",         /* overlong */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xED\xA0\x80",     /* surrogate */
        "\xED\xBF\xBF",     /* surrogate */
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF5\x80\x80\x80", /* beyond U+10FFFF */
        "\xFE",             /* never used */
        "\xFF",             /* never used */
        "\xE6\x41\x41",     /* a letter for a tail */
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        for (size_t before = 0; before < 17; before++) {
            for (size_t after = 0; after < 3; after++) {
                memset(text, 'a', sizeof(text));
                strcpy(text + before, wrong[i]);
                text[before + strlen(wrong[i])] = 'a';
                if (text_utf8_valid(
                        (struct text){text, before + strlen(wrong[i]) + after}))
                    fail_msg("case %zu after %zu letters", i, before);
            }
        }
    }
}

static void nothing_is_valid_and_empty(void **state)
{
    (void)state;
    assert_true(text_utf8_valid(TEXT_NONE));
    assert_int_equal(text_utf8_length(TEXT_NONE), 0);
    assert_int_equal(text_utf8_prefix(TEXT_NONE, 5), 0);
    assert_int_equal(text_utf8_prefix_chars(TEXT_NONE, 5), 0);
    assert_true(text_equal(TEXT_NONE, TEXT_LITERAL("")));
    assert_false(text_equal(TEXT_LITERAL("a"), TEXT_LITERAL("b")));
}

static void a_prefix_splits_no_character(void **state)
{
    struct text t = TEXT_LITERAL("a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x8C\x99z");
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    (void)state;
    for (size_t bytes = 0; bytes < sizeof(expected) / sizeof(expected[0]);
         bytes++)
        assert_int_equal(text_utf8_prefix(t, bytes), expected[bytes]);
}

static void a_prefix_of_characters_ends_behind_its_last_one(void **state)
{
    struct text t = TEXT_LITERAL("a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x8C\x99z");
    static const size_t expected[] = {0, 1, 3, 6, 10, 11, 11};

    (void)state;
    for (size_t n = 0; n < sizeof(expected) / sizeof(expected[0]); n++)
        assert_int_equal(text_utf8_prefix_chars(t, n), expected[n]);
    assert_int_equal(text_utf8_length(t), 5);
}

static void cleaning_replaces_what_is_no_utf8_and_nul(void **state)
{
    char out[32];

    (void)state;
    text_clean(TEXT_LITERAL("a\0b\xFF\xC3\xA9\xC3"), out, sizeof(out));
    assert_string_equal(out, "a?b?\xC3\xA9?");
    text_clean(TEXT_NONE, out, sizeof(out));
    assert_string_equal(out, "");
}

static void cleaning_stays_within_its_size(void **state)
{
    struct text t = TEXT_LITERAL("\xE6\x97\xA5\xE6\x97\xA5");
    char out[8];

    (void)state;
    for (size_t size = 1; size < 8; size++) {
        memset(out, 'x', sizeof(out));
        text_clean(t, out, size);
        assert_int_equal(strlen(out), (size - 1) / 3 * 3);
        assert_int_equal(out[size], 'x');
    }
    out[0] = 'x';
    text_clean(t, out, 0);
    assert_int_equal(out[0], 'x');
}

static void a_typing_error_finds_the_word(void **state)
{
    static const char *const keys[] = {"database",   "scripts", "batch", "poll",
                                       "partitions", "no",      NULL};

    (void)state;
    assert_string_equal(text_nearest("databse", keys), "database");
    assert_string_equal(text_nearest("script", keys), "scripts");
    assert_string_equal(text_nearest("bacth", keys), "batch");
    assert_string_equal(text_nearest("partitoins", keys), "partitions");
    assert_string_equal(text_nearest("poll", keys), "poll");
}

static void a_word_far_from_all_finds_none(void **state)
{
    static const char *const keys[] = {"database", "a", "no", "poll", NULL};
    static const char *const none[] = {NULL};
    char longest[200];

    (void)state;
    assert_null(text_nearest("kitchen", keys));
    assert_null(text_nearest("", keys));
    assert_null(text_nearest("b", keys));
    assert_null(text_nearest("ball", keys)); /* half of a short word */
    assert_null(text_nearest("database", none));
    memset(longest, 'd', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_null(text_nearest(longest, keys));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_valid_but_surrogates),
        cmocka_unit_test(wrong_utf8_is_refused_at_every_distance),
        cmocka_unit_test(nothing_is_valid_and_empty),
        cmocka_unit_test(a_prefix_splits_no_character),
        cmocka_unit_test(a_prefix_of_characters_ends_behind_its_last_one),
        cmocka_unit_test(cleaning_replaces_what_is_no_utf8_and_nul),
        cmocka_unit_test(cleaning_stays_within_its_size),
        cmocka_unit_test(a_typing_error_finds_the_word),
        cmocka_unit_test(a_word_far_from_all_finds_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
