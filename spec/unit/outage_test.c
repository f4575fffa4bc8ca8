/*
 * What workers say of a database that is away becomes one line for each kind of
 * trouble, with their number, and one when it is over.
 */
#include "run/outage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define START INT64_C(1000000)
#define LATER (START + OUTAGE_GATHER_US)

static char line[OUTAGE_LINE_SIZE];

static void begin(struct outage *outage, enum status status, const char *why)
{
    outage_begin(outage, status, text_of(why), START);
}

static void one_line_has_the_number_of_workers(void **state)
{
    struct outage outage = {.now = 0};

    (void)state;
    begin(&outage, STATUS_LOST, "it is gone");
    begin(&outage, STATUS_LOST, "it went away");
    begin(&outage, STATUS_LOST, "it is gone");
    assert_false(outage_line(&outage, 4, LATER - 1, line));
    assert_true(outage_line(&outage, 4, LATER, line));
    assert_string_equal(line, "3 of 4 workers: it is gone; trying again");
    assert_false(outage_line(&outage, 4, LATER, line));
    begin(&outage, STATUS_LOST, "it is gone"); /* the line stands */
    assert_false(outage_line(&outage, 4, INT64_MAX, line));
    for (int i = 3; i >= 0; i--)
        assert_int_equal(outage_end(&outage), i == 0);
    outage_over(&outage, 4, line);
    assert_string_equal(line,
                        "the database works again, for each of 4 workers");
}

static void each_kind_has_its_line(void **state)
{
    struct outage outage = {.now = 0};

    (void)state;
    begin(&outage, STATUS_UNAVAILABLE, "no entry");
    begin(&outage, STATUS_LOST, "it is gone");
    begin(&outage, STATUS_CONFLICT, "it is locked");
    assert_true(outage_line(&outage, 3, LATER, line));
    assert_string_equal(line, "1 of 3 workers: it is gone; trying again");
    assert_true(outage_line(&outage, 3, LATER, line));
    assert_string_equal(line, "1 of 3 workers: it is locked; trying again");
    assert_true(outage_line(&outage, 3, LATER, line));
    assert_string_equal(line, "1 of 3 workers: no entry; trying again");
    assert_false(outage_line(&outage, 3, LATER, line));
}

static void what_is_over_soon_is_told_all_the_same(void **state)
{
    struct outage outage = {.now = 0};

    (void)state;
    begin(&outage, STATUS_LOST, "it is gone");
    assert_true(outage_end(&outage));
    assert_true(outage_line(&outage, 2, INT64_MAX, line));
    assert_string_equal(line, "1 of 2 workers: it is gone; trying again");
    outage_over(&outage, 2, line);
    begin(&outage, STATUS_LOST, "gone again");
    assert_true(outage_line(&outage, 2, LATER, line));
    assert_string_equal(line, "1 of 2 workers: gone again; trying again");
}

static void a_host_of_one_worker_does_not_count(void **state)
{
    struct outage outage = {.now = 0};

    (void)state;
    begin(&outage, STATUS_LOST, "it is gone");
    assert_true(outage_line(&outage, 1, LATER, line));
    assert_string_equal(line, "it is gone; trying again");
    assert_true(outage_end(&outage));
    outage_over(&outage, 1, line);
    assert_string_equal(line, "the database works again");
}

static void the_longest_reason_fits(void **state)
{
    struct outage outage = {.now = 0};
    char why[2 * DIAG_MESSAGE_SIZE];

    (void)state;
    memset(why, 'x', sizeof(why) - 1);
    why[sizeof(why) - 1] = '\0';
    begin(&outage, STATUS_LOST, why);
    assert_true(outage_line(&outage, 100000, LATER, line));
    assert_non_null(strstr(line, "; trying again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_has_the_number_of_workers),
        cmocka_unit_test(each_kind_has_its_line),
        cmocka_unit_test(what_is_over_soon_is_told_all_the_same),
        cmocka_unit_test(a_host_of_one_worker_does_not_count),
        cmocka_unit_test(the_longest_reason_fits),
    };

    return cmocka_run_group_tests_name("outage", tests, NULL, NULL);
}
