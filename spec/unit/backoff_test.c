/*
 * Waiting times between tries: they double up to the cap, and a reset begins
 * anew; none is zero, negative or beyond the cap, however many there are.
 */
#include "run/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void waits_stay_between_half_and_all_of_what_doubled(void **state)
{
    struct backoff backoff = backoff_make(20000, 10000000);
    int64_t full = 20000;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        int64_t wait = backoff_next(&backoff);

        assert_true(wait >= full - full / 2 && wait <= full);
        assert_true(wait > 0);
        full = full * 2 < 10000000 ? full * 2 : 10000000;
    }
}

static void a_reset_begins_anew(void **state)
{
    struct backoff backoff = backoff_make(1000, 1000000);

    (void)state;
    for (int i = 0; i < 20; i++)
        (void)backoff_next(&backoff);
    assert_true(backoff_next(&backoff) >= 500000);
    backoff_reset(&backoff);
    assert_true(backoff_next(&backoff) <= 1000);
}

static void waits_of_two_made_at_one_moment_are_not_the_same(void **state)
{
    (void)state;
    for (int pair = 0; pair < 1000; pair++) {
        struct backoff one = backoff_make(1000000, 1000000);
        struct backoff two = backoff_make(1000000, 1000000);
        int same = 0;

        for (int i = 0; i < 10; i++)
            same += backoff_next(&one) == backoff_next(&two);
        assert_true(same < 10);
    }
}

static void a_cap_below_the_first_wait_is_none(void **state)
{
    struct backoff backoff = backoff_make(1000, 10);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_in_range(backoff_next(&backoff), 500, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_stay_between_half_and_all_of_what_doubled),
        cmocka_unit_test(a_reset_begins_anew),
        cmocka_unit_test(waits_of_two_made_at_one_moment_are_not_the_same),
        cmocka_unit_test(a_cap_below_the_first_wait_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
