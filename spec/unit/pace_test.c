/*
 * Waits between looks: they double up to the longest, begin anew after what was
 * found or told, and never grow long while something is known to be kept back.
 */
#include "run/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS     INT64_C(1000)
#define SECOND (1000 * MS)
#define HOUR   (3600 * SECOND)

static void the_waits_double_up_to_the_longest(void **state)
{
    struct pace pace = pace_make(5 * MS, 50 * MS);

    (void)state;
    assert_int_equal(pace_next(&pace, false), 5 * MS);
    assert_int_equal(pace_next(&pace, false), 10 * MS);
    assert_int_equal(pace_next(&pace, false), 20 * MS);
    assert_int_equal(pace_next(&pace, false), 40 * MS);
    for (int i = 0; i < 10; i++)
        assert_int_equal(pace_next(&pace, false), 50 * MS);
    pace_begin(&pace);
    assert_int_equal(pace_next(&pace, false), 5 * MS);
}

static void
what_was_found_is_followed_by_short_waits_whatever_is_set(void **state)
{
    struct pace pace = pace_make(HOUR, HOUR);
    int64_t sum = 0;

    (void)state;
    for (int i = 0; i < 8; i++)
        sum += pace_next(&pace, false);
    assert_true(sum < 2 * SECOND);
    for (int i = 0; i < 64; i++)
        (void)pace_next(&pace, false);
    assert_int_equal(pace_next(&pace, false), HOUR);
    pace_begin(&pace);
    assert_true(pace_next(&pace, false) <= 5 * MS);
}

static void what_is_kept_back_is_looked_for_once_a_second(void **state)
{
    struct pace pace = pace_make(HOUR, HOUR);

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_true(pace_next(&pace, true) <= SECOND);
    for (int i = 0; i < 64; i++)
        (void)pace_next(&pace, false);
    assert_true(pace_next(&pace, true) <= SECOND);
}

static void what_is_kept_back_makes_no_wait_longer(void **state)
{
    struct pace pace = pace_make(2 * MS, 10 * MS);

    (void)state;
    assert_int_equal(pace_next(&pace, true), 2 * MS);
    assert_int_equal(pace_next(&pace, true), 4 * MS);
    for (int i = 0; i < 10; i++)
        assert_true(pace_next(&pace, true) <= 10 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_waits_double_up_to_the_longest),
        cmocka_unit_test(
            what_was_found_is_followed_by_short_waits_whatever_is_set),
        cmocka_unit_test(what_is_kept_back_is_looked_for_once_a_second),
        cmocka_unit_test(what_is_kept_back_makes_no_wait_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
