#include "base/uuid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW INT64_C(1700000000123456)

static int64_t milliseconds(const struct uuid *uuid)
{
    int64_t ms = 0;

    for (int i = 0; i < 6; i++)
        ms = ms << 8 | uuid->bytes[i];
    return ms;
}

static void assert_rises(const struct uuid *before, const struct uuid *after)
{
    assert_true(memcmp(before->bytes, after->bytes, 16) < 0);
}

static void an_id_carries_version_variant_and_time(void **state)
{
    struct uuid_source source = {.last_ms = 0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct uuid uuid = uuid_v7(&source, NOW + i * 1000);

        assert_int_equal(uuid.bytes[6] >> 4, 7);
        assert_int_equal(uuid.bytes[8] >> 6, 2);
        assert_int_equal(milliseconds(&uuid), NOW / 1000 + i);
    }
}

/* Enough to fill the counter, after which the time part has to move. */
static void ids_rise_while_the_clock_stands_still(void **state)
{
    struct uuid_source source = {.last_ms = 0};
    struct uuid before = uuid_v7(&source, NOW);

    (void)state;
    for (int i = 0; i < 600000; i++) {
        struct uuid uuid = uuid_v7(&source, NOW);

        assert_rises(&before, &uuid);
        before = uuid;
    }
    assert_true(milliseconds(&before) > NOW / 1000);
    assert_true(milliseconds(&before) < NOW / 1000 + 10);
}

static void ids_rise_when_the_clock_goes_back(void **state)
{
    struct uuid_source source = {.last_ms = 0};
    struct uuid before = uuid_v7(&source, NOW);

    (void)state;
    for (int i = 1; i < 10000; i++) {
        struct uuid uuid = uuid_v7(&source, NOW - i * INT64_C(777777));

        assert_rises(&before, &uuid);
        before = uuid;
    }
}

static void ids_of_two_sources_differ(void **state)
{
    struct uuid_source one = {.last_ms = 0};
    struct uuid_source two = {.last_ms = 0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct uuid a = uuid_v7(&one, NOW);
        struct uuid b = uuid_v7(&two, NOW);

        assert_false(uuid_equal(&a, &b));
    }
}

static void the_random_bits_all_move(void **state)
{
    struct uuid_source source = {.last_ms = 0};
    uint8_t ones[16] = {0};
    uint8_t zeros[16] = {0};

    (void)state;
    for (int i = 0; i < 200; i++) {
        struct uuid uuid = uuid_v7(&source, NOW);

        for (int b = 9; b < 16; b++) {
            ones[b] |= uuid.bytes[b];
            zeros[b] |= (uint8_t)~uuid.bytes[b];
        }
    }
    for (int b = 9; b < 16; b++) {
        assert_int_equal(ones[b], 0xFF);
        assert_int_equal(zeros[b], 0xFF);
    }
}

static void the_text_form_comes_back(void **state)
{
    struct uuid uuid = {{0x01, 0x8B, 0xCF, 0xE5, 0x68, 0x04, 0x7D, 0x58, 0x9E,
                         0xBE, 0xA5, 0x59, 0x5A, 0x27, 0x82, 0xF2}};
    char text[UUID_TEXT_LEN + 1];
    struct uuid parsed;

    (void)state;
    uuid_format(&uuid, text);
    assert_string_equal(text, "018bcfe5-6804-7d58-9ebe-a5595a2782f2");
    for (int shift = 0; shift < 256; shift++) {
        for (int b = 0; b < 16; b++)
            uuid.bytes[b] = (uint8_t)(b * 16 + shift);
        uuid_format(&uuid, text);
        assert_true(uuid_parse(text_of(text), &parsed));
        assert_true(uuid_equal(&uuid, &parsed));
    }
}

static void either_case_is_the_same_id(void **state)
{
    struct uuid lower;
    struct uuid upper;

    (void)state;
    assert_true(
        uuid_parse(text_of("018bcfe5-6804-7d58-9ebe-a5595a2782f2"), &lower));
    assert_true(
        uuid_parse(text_of("018BCFE5-6804-7D58-9EBE-A5595A2782F2"), &upper));
    assert_true(uuid_equal(&lower, &upper));
}

static void other_forms_are_refused_and_change_nothing(void **state)
{
    static const char *const wrong[] = {
        "",
        "018bcfe568047d589ebea5595a2782f2",
        "{018bcfe5-6804-7d58-9ebe-a5595a2782f2}",
        "018bcfe5-6804-7d58-9ebe-a5595a2782f",
        "018bcfe5-6804-7d58-9ebe-a5595a2782f2 ",
        " 18bcfe5-6804-7d58-9ebe-a5595a2782f2",
        "urn:uuid:018bcfe5-6804-7d58-9ebe-a5595a2782f2",
        "018bcfe56-804-7d58-9ebe-a5595a2782f2",
        "018bcfe5-6804-7d58-9ebea-5595a2782f2",
    };
    struct uuid untouched = {{1, 2, 3}};
    struct uuid uuid = untouched;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(uuid_parse(text_of(wrong[i]), &uuid));
    assert_false(uuid_parse(TEXT_NONE, &uuid));
    assert_true(uuid_equal(&uuid, &untouched));
}

/* Every byte that is no digit at every place of a digit, and dashes. */
static void one_wrong_byte_anywhere_is_refused(void **state)
{
    static const char good[] = "018bcfe5-6804-7d58-9ebe-a5595a2782f2";
    static const char digits[] = "0123456789abcdefABCDEF";
    struct uuid uuid;

    (void)state;
    for (size_t at = 0; at < UUID_TEXT_LEN; at++) {
        for (int c = 0; c < 256; c++) {
            char text[UUID_TEXT_LEN + 1];
            bool fine = good[at] == '-' ? c == '-'
                                        : c != 0 && strchr(digits, c) != NULL;

            memcpy(text, good, sizeof(text));
            text[at] = (char)c;
            assert_int_equal(
                uuid_parse((struct text){text, UUID_TEXT_LEN}, &uuid), fine);
        }
    }
}

/* RFC 9562, A.4; the others, whose names end at every place around the end of
 * a block, are what Python's uuid module gives. */
static void a_name_has_one_id_in_its_namespace(void **state)
{
    static const struct {
        const char *name;
        size_t repeated;
        const char *id;
    } known[] = {
        {"www.example.com", 1, "2ed6657d-e927-568b-95e1-2665a8aea6a2"},
        {"python.org", 1, "886313e1-3b8a-5372-9b90-0c9aee199e5d"},
        {"", 1, "4ebd0208-8328-5d69-8c44-ec50939c0967"},
        {"a", 39, "5824f981-4282-59d4-9716-acb6d741350e"},
        {"a", 40, "39f39c20-db47-5131-8879-62f8f67f9014"},
        {"a", 47, "660c273c-8a00-5941-b6f4-8d0afed88966"},
        {"a", 48, "7280cc42-274a-5c4a-91fc-ae23f853eeb7"},
        {"a", 1000, "062a6b1a-ddc3-5fcc-b238-790846e533d6"},
    };
    struct uuid dns;

    (void)state;
    assert_true(
        uuid_parse(text_of("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), &dns));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char name[1001], text[UUID_TEXT_LEN + 1];
        struct uuid uuid;
        size_t len = strlen(known[i].name) * known[i].repeated;

        for (size_t at = 0; at < len; at++)
            name[at] = known[i].name[at % strlen(known[i].name)];
        uuid = uuid_v5(&dns, (struct text){name, len});
        uuid_format(&uuid, text);
        assert_string_equal(text, known[i].id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_carries_version_variant_and_time),
        cmocka_unit_test(ids_rise_while_the_clock_stands_still),
        cmocka_unit_test(ids_rise_when_the_clock_goes_back),
        cmocka_unit_test(ids_of_two_sources_differ),
        cmocka_unit_test(the_random_bits_all_move),
        cmocka_unit_test(the_text_form_comes_back),
        cmocka_unit_test(either_case_is_the_same_id),
        cmocka_unit_test(other_forms_are_refused_and_change_nothing),
        cmocka_unit_test(one_wrong_byte_anywhere_is_refused),
        cmocka_unit_test(a_name_has_one_id_in_its_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
