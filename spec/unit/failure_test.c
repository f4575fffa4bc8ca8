/*
 * Failure: a reason is at most 1,000 whole characters, whatever a script put
 * into its error.
 */
#include "consumer/failure.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void a_reason_starts_with_its_class(void **state)
{
    struct failure failure;

    (void)state;
    failure_set(&failure, true, "sql", "%s", "handlers/x.lua:1: no");
    assert_string_equal(failure.reason, "sql: handlers/x.lua:1: no");
    assert_true(failure.permanent);
}

static void a_long_reason_is_cut_between_characters(void **state)
{
    struct failure failure;
    struct buffer text = BUFFER_EMPTY;
    struct text reason;

    (void)state;
    for (int i = 0; i < 3000; i++)
        buffer_append_string(&text, "\xf0\x9f\x98\x80");
    failure_set(&failure, false, "error", "%s", text.data);
    reason = text_of(failure.reason);
    assert_true(text_utf8_valid(reason));
    assert_int_equal(text_utf8_length(reason), FAILURE_REASON_CHARS);
    buffer_free(&text);
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    struct failure failure;

    (void)state;
    failure_set(&failure, false, "error", "a%cb", 0xff);
    assert_string_equal(failure.reason, "error: a?b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_starts_with_its_class),
        cmocka_unit_test(a_long_reason_is_cut_between_characters),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
