#include "base/status.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void every_status_has_its_word(void **state)
{
    (void)state;
    assert_string_equal(status_word(STATUS_OK), "ok");
    assert_string_equal(status_word(STATUS_FENCED), "fenced");
    assert_string_equal(status_word((enum status)77), "unknown");
}

static void a_diag_holds_status_and_sentence(void **state)
{
    struct diag diag = {.constraint = "old_index"};

    (void)state;
    assert_int_equal(diag_set(&diag, STATUS_INVALID, "line %d: %s", 7, "bad"),
                     STATUS_INVALID);
    assert_int_equal(diag.status, STATUS_INVALID);
    assert_string_equal(diag.message, "line 7: bad");
    assert_string_equal(diag.constraint, "");
}

static void without_a_diag_only_the_status_is_returned(void **state)
{
    (void)state;
    assert_int_equal(diag_set(NULL, STATUS_BUSY, "%s", "x"), STATUS_BUSY);
}

static void wrapping_keeps_status_and_constraint(void **state)
{
    struct diag diag;

    (void)state;
    (void)diag_set(&diag, STATUS_UNIQUE, "row exists");
    strcpy(diag.constraint, "events_id");
    assert_int_equal(diag_wrap(&diag, "append of %d events", 3), STATUS_UNIQUE);
    assert_string_equal(diag.message, "append of 3 events: row exists");
    assert_string_equal(diag.constraint, "events_id");
}

static void arguments_may_come_from_the_old_message(void **state)
{
    struct diag diag;

    (void)state;
    (void)diag_set(&diag, STATUS_FAILED, "inner");
    (void)diag_set(&diag, STATUS_FAILED, "outer (%s)", diag.message);
    assert_string_equal(diag.message, "outer (inner)");
    (void)diag_wrap(&diag, "again [%s]", diag.message);
    assert_string_equal(diag.message, "again [outer (inner)]: outer (inner)");
}

/* Characters of every width at every distance from the end. */
static void a_long_message_is_cut_between_characters_and_says_so(void **state)
{
    static const char *const characters[] = {"a", "\xC3\xA9", "\xE6\x97\xA5",
                                             "\xF0\x9F\x8C\x99"};
    char text[DIAG_MESSAGE_SIZE * 2];
    struct diag diag;

    (void)state;
    for (size_t c = 0; c < 4; c++) {
        for (size_t shift = 0; shift < 5; shift++) {
            size_t len = shift;
            size_t got;

            memset(text, '.', shift);
            while (len < sizeof(text) - 8) {
                strcpy(text + len, characters[c]);
                len += strlen(characters[c]);
            }
            (void)diag_set(&diag, STATUS_INVALID, "%s", text);
            got = strlen(diag.message);
            assert_true(text_utf8_valid(text_of(diag.message)));
            assert_true(got < DIAG_MESSAGE_SIZE &&
                        got >= DIAG_MESSAGE_SIZE - 4);
            assert_string_equal(diag.message + got - 3, "...");
            (void)diag_wrap(&diag, "%s", text);
            assert_true(text_utf8_valid(text_of(diag.message)));
        }
    }
}

static void a_message_that_just_fits_is_whole(void **state)
{
    char text[DIAG_MESSAGE_SIZE];
    struct diag diag;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    (void)diag_set(&diag, STATUS_INVALID, "%s", text);
    assert_string_equal(diag.message, text);
}

static void a_message_is_utf8_whatever_it_was_made_of(void **state)
{
    struct diag diag;

    (void)state;
    (void)diag_set(&diag, STATUS_FAILED, "caf%c %s", 0xE9, "\xFF\xC3\xA9\xE6");
    assert_string_equal(diag.message, "caf? ?\xC3\xA9?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_word),
        cmocka_unit_test(a_diag_holds_status_and_sentence),
        cmocka_unit_test(without_a_diag_only_the_status_is_returned),
        cmocka_unit_test(wrapping_keeps_status_and_constraint),
        cmocka_unit_test(arguments_may_come_from_the_old_message),
        cmocka_unit_test(a_long_message_is_cut_between_characters_and_says_so),
        cmocka_unit_test(a_message_that_just_fits_is_whole),
        cmocka_unit_test(a_message_is_utf8_whatever_it_was_made_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
