#include "consumer/fingerprint.h"

#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct fingerprint make(const char *sources, const char *key,
                               const char *shape, int64_t revision,
                               const char *code)
{
    struct fingerprint f = {.part = {""}};

    memcpy(f.part[FINGERPRINT_SOURCES], sources, strlen(sources) + 1);
    memcpy(f.part[FINGERPRINT_KEY], key, strlen(key) + 1);
    memcpy(f.part[FINGERPRINT_SHAPE], shape, strlen(shape) + 1);
    fingerprint_set_code(&f, revision, code);
    return f;
}

static void nothing_stored_is_a_new_one(void **state)
{
    struct fingerprint f = make("a", "b", "c", 1, "d");
    char text[FINGERPRINT_MAX + 1];

    (void)state;
    assert_int_equal(fingerprint_compare(TEXT_NONE, &f).verdict,
                     FINGERPRINT_NEW);
    fingerprint_accept(TEXT_NONE, &f, text);
    assert_string_equal(text, "a,b,c,1.d");
    assert_int_equal(fingerprint_compare(text_of(text), &f).verdict,
                     FINGERPRINT_EQUAL);
}

static void each_of_the_first_three_is_a_change(void **state)
{
    static const struct {
        const char *stored;
        enum fingerprint_part part;
    } cases[] = {
        {"x,b,c,1.d", FINGERPRINT_SOURCES},
        {"a,x,c,1.d", FINGERPRINT_KEY},
        {"a,b,x,1.d", FINGERPRINT_SHAPE},
    };
    struct fingerprint f = make("a", "b", "c", 1, "d");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fingerprint_change change = fingerprint_compare(
            text_of(cases[i].stored), &f);

        assert_int_equal(change.verdict, FINGERPRINT_CHANGED);
        for (int p = 0; p < FINGERPRINT_PARTS; p++)
            assert_int_equal(change.part[p], p == (int)cases[i].part);
        assert_false(change.reverted);
    }
}

static void only_a_higher_revision_asks_for_a_rebuild(void **state)
{
    struct fingerprint f = make("a", "b", "c", 40, "d");

    (void)state;
    assert_int_equal(
        fingerprint_compare(TEXT_LITERAL("a,b,c,14.x"), &f).verdict,
        FINGERPRINT_OLDER_CODE);
    assert_int_equal(
        fingerprint_compare(TEXT_LITERAL("a,b,c,15.d"), &f).verdict,
        FINGERPRINT_OLDER_CODE);
    assert_int_equal(
        fingerprint_compare(TEXT_LITERAL("a,b,c,13.d"), &f).verdict,
        FINGERPRINT_REBUILD_DUE);
    assert_int_equal(
        fingerprint_compare(TEXT_LITERAL("a,b,c,14.d"), &f).verdict,
        FINGERPRINT_EQUAL);
}

static void a_rebuild_keeps_what_was_before_it(void **state)
{
    struct fingerprint one = make("a", "b", "c", 1, "d");
    struct fingerprint two = make("a", "k", "c", 1, "e");
    char text[FINGERPRINT_MAX + 1];
    char again[FINGERPRINT_MAX + 1];
    struct fingerprint_change change;

    (void)state;
    fingerprint_rebuild(TEXT_LITERAL("a,b,c,1.d"), &two, text);
    assert_string_equal(text, "a,k,c,1.e;a,b,c,1.d");
    /* one that changes nothing keeps it, too */
    fingerprint_rebuild(text_of(text), &two, again);
    assert_string_equal(again, text);
    change = fingerprint_compare(text_of(text), &one);
    assert_int_equal(change.verdict, FINGERPRINT_CHANGED);
    assert_true(change.reverted);
    /* taken over without a rebuild: what was before the last one stays */
    fingerprint_accept(text_of(text), &one, again);
    assert_string_equal(again, "a,b,c,1.d;a,b,c,1.d");
    fingerprint_rebuild(text_of(text), &one, again);
    assert_string_equal(again, "a,b,c,1.d;a,k,c,1.e");
    fingerprint_rebuild(TEXT_NONE, &one, again);
    assert_string_equal(again, "a,b,c,1.d");
}

static void a_text_of_another_origin_is_a_change_of_all(void **state)
{
    static const char *const texts[] = {
        "",
        "a",
        "a,b,c",
        "a,b,c,1.d,e",
        "a,b,c,1.d;",
        "a,,c,1.d",
        "a,b,c,1.d;a",
        "a;b;c;1.d",
        "a,b,c,1.d;a,b,c,1.d;",
        "0123456789012345678901234567890123,b,c,1.d",
    };
    struct fingerprint f = make("a", "b", "c", 1, "d");
    char text[FINGERPRINT_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct fingerprint_change change = fingerprint_compare(
            text_of(texts[i]), &f);

        assert_int_equal(change.verdict, FINGERPRINT_CHANGED);
        for (int p = 0; p < FINGERPRINT_PARTS; p++)
            assert_true(change.part[p]);
        fingerprint_accept(text_of(texts[i]), &f, text);
        assert_string_equal(text, "a,b,c,1.d");
        fingerprint_rebuild(text_of(texts[i]), &f, text);
        assert_string_equal(text, "a,b,c,1.d");
    }
}

static void the_largest_revision_fits_beside_a_digest(void **state)
{
    static const char digest[] = "0123456789abcdefghijklmn";
    struct fingerprint f = make(digest, digest, digest, INT32_MAX, digest);
    struct fingerprint g = make(digest, digest, digest, 1, digest);
    char text[FINGERPRINT_MAX + 1];

    (void)state;
    assert_int_equal(strlen(digest), DIGEST_LEN);
    assert_string_equal(f.part[FINGERPRINT_CODE],
                        "zik0zj.0123456789abcdefghijklmn");
    assert_int_equal(strlen(f.part[FINGERPRINT_CODE]), FINGERPRINT_PART_MAX);
    fingerprint_accept(TEXT_NONE, &g, text);
    fingerprint_rebuild(text_of(text), &f, text);
    assert_true(strlen(text) <= FINGERPRINT_MAX);
    assert_int_equal(fingerprint_compare(text_of(text), &f).verdict,
                     FINGERPRINT_EQUAL);
    assert_int_equal(fingerprint_compare(text_of(text), &g).verdict,
                     FINGERPRINT_OLDER_CODE);
}

static void what_changed_is_said_in_words(void **state)
{
    struct fingerprint f = make("a", "b", "c", 1, "d");
    struct fingerprint_change change;
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    change = fingerprint_compare(TEXT_LITERAL("x,y,c,1.d"), &f);
    fingerprint_describe(&change, &out);
    assert_string_equal(out.data, "its source, aggregates or event types and "
                                  "its key or number of partitions");
    buffer_clear(&out);
    change = fingerprint_compare(TEXT_LITERAL("a,y,z,1.z"), &f);
    fingerprint_describe(&change, &out);
    assert_string_equal(out.data,
                        "its key or number of partitions, its stored shape "
                        "(fields, tables) and its code");
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stored_is_a_new_one),
        cmocka_unit_test(each_of_the_first_three_is_a_change),
        cmocka_unit_test(only_a_higher_revision_asks_for_a_rebuild),
        cmocka_unit_test(a_rebuild_keeps_what_was_before_it),
        cmocka_unit_test(a_text_of_another_origin_is_a_change_of_all),
        cmocka_unit_test(the_largest_revision_fits_beside_a_digest),
        cmocka_unit_test(what_changed_is_said_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
