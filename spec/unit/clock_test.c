#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

/* A fixed sequence, so that a failure comes again. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void assert_formats(int64_t time_us, const char *expected)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    assert_string_equal(text, expected);
}

static void assert_parses(const char *text, const char *expected)
{
    struct diag diag;
    int64_t time_us;

    if (clock_parse(text_of(text), &time_us, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    assert_formats(time_us, expected);
}

static void assert_refused(const char *text, const char *why)
{
    int64_t time_us = 42;
    struct diag diag;

    if (clock_parse(text_of(text), &time_us, &diag) != STATUS_INVALID)
        fail_msg("accepted: %s", text);
    if (strstr(diag.message, why) == NULL || strstr(diag.message, text) == NULL)
        fail_msg("%s: %s", text, diag.message);
    assert_int_equal(time_us, 42);
}

static void known_times_are_written_right(void **state)
{
    (void)state;
    assert_formats(0, "1970-01-01T00:00:00.000000Z");
    assert_formats(-1, "1969-12-31T23:59:59.999999Z");
    assert_formats(INT64_C(1700000000123456), "2023-11-14T22:13:20.123456Z");
    assert_formats(INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z");
    assert_formats(CLOCK_MIN, "0000-01-01T00:00:00.000000Z");
    assert_formats(CLOCK_MAX, "9999-12-31T23:59:59.999999Z");
}

static void a_time_out_of_range_is_written_as_the_nearest(void **state)
{
    (void)state;
    assert_formats(INT64_MIN, "0000-01-01T00:00:00.000000Z");
    assert_formats(INT64_MAX, "9999-12-31T23:59:59.999999Z");
}

/* Against the C library's calendar, for every day there is. */
static void every_day_agrees_with_gmtime(void **state)
{
    (void)state;
    for (int64_t us = CLOCK_MIN; us <= CLOCK_MAX; us += 86400 * CLOCK_SECOND) {
        time_t seconds = (time_t)(us / CLOCK_SECOND);
        char text[CLOCK_TEXT_SIZE];
        char expected[80];
        struct tm tm;

        gmtime_r(&seconds, &tm);
        snprintf(expected, sizeof(expected), "%04d-%02d-%02dT00:00:00.000000Z",
                 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        clock_format(us, text);
        if (strcmp(text, expected) != 0)
            fail_msg("%s, not %s", text, expected);
    }
}

/* Both ways through the reader: the form of rows, and the general one. */
static void random_times_come_back(void **state)
{
    uint64_t seed = 88172645463325252;
    uint64_t range = (uint64_t)(CLOCK_MAX - CLOCK_MIN) + 1;

    (void)state;
    for (int i = 0; i < 300000; i++) {
        int64_t us = CLOCK_MIN + (int64_t)(next_random(&seed) % range);
        char text[CLOCK_TEXT_SIZE + 8];
        int64_t back;

        clock_format(us, text);
        if (clock_parse(text_of(text), &back, NULL) != STATUS_OK || back != us)
            fail_msg("%s", text);
        text[10] = 't';
        if (clock_parse(text_of(text), &back, NULL) != STATUS_OK || back != us)
            fail_msg("%s", text);
    }
}

static void any_offset_is_normalised_to_utc(void **state)
{
    (void)state;
    assert_parses("2024-05-31T12:30:00Z", "2024-05-31T12:30:00.000000Z");
    assert_parses("2024-05-31t12:30:00z", "2024-05-31T12:30:00.000000Z");
    assert_parses("2024-05-31T12:30:00+05:45", "2024-05-31T06:45:00.000000Z");
    assert_parses("2024-12-31T23:30:00.25-01:00",
                  "2025-01-01T00:30:00.250000Z");
    assert_parses("2024-03-01T00:00:00+00:01", "2024-02-29T23:59:00.000000Z");
    assert_parses("2024-05-31T12:30:00-00:00", "2024-05-31T12:30:00.000000Z");
    assert_parses("2024-05-31T12:30:00+23:59", "2024-05-30T12:31:00.000000Z");
    assert_parses("0000-02-29T00:00:00Z", "0000-02-29T00:00:00.000000Z");
}

static void fractions_down_to_a_microsecond_are_kept(void **state)
{
    (void)state;
    assert_parses("2024-05-31T12:30:00.1Z", "2024-05-31T12:30:00.100000Z");
    assert_parses("2024-05-31T12:30:00.000001Z", "2024-05-31T12:30:00.000001Z");
    assert_parses("2024-05-31T12:30:00.123456000Z",
                  "2024-05-31T12:30:00.123456Z");
    assert_refused("2024-05-31T12:30:00.1234567Z", "microsecond");
    assert_refused("2024-05-31T12:30:00.0000000001Z", "microsecond");
    assert_refused("2024-05-31T12:30:00.Z", "decimal point");
}

static void dates_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    assert_refused("2024-02-30T00:00:00Z", "no such day");
    assert_refused("2023-02-29T00:00:00Z", "no such day");
    assert_refused("1900-02-29T00:00:00.000000Z", "no such day");
    assert_refused("2024-04-31T00:00:00.000000Z", "no such day");
    assert_refused("2024-00-10T00:00:00.000000Z", "no such month");
    assert_refused("2024-13-10T00:00:00.000000Z", "no such month");
    assert_refused("2024-01-00T00:00:00.000000Z", "no such day");
    assert_refused("2024-01-01T24:00:00.000000Z", "hour");
    assert_refused("2024-01-01T00:60:00.000000Z", "minute");
    assert_refused("2024-01-01T00:00:61.000000Z", "second");
    assert_refused("2016-12-31T23:59:60.000000Z", "leap second");
    assert_refused("2016-12-31T23:59:60Z", "leap second");
}

static void no_text_is_no_time_and_no_amount(void **state)
{
    int64_t value;

    (void)state;
    assert_int_equal(clock_parse(TEXT_NONE, &value, NULL), STATUS_INVALID);
    assert_int_equal(clock_parse_duration(TEXT_NONE, &value, NULL),
                     STATUS_INVALID);
    assert_int_equal(clock_parse_size(TEXT_NONE, &value, NULL), STATUS_INVALID);
}

static void other_forms_of_time_are_refused(void **state)
{
    (void)state;
    assert_refused("", "must look like");
    assert_refused("now", "must look like");
    assert_refused("2024-05-31", "a T must stand");
    assert_refused("2024-05-31 12:30:00Z", "a T must stand");
    assert_refused("2024-05-31T12:30:00", "missing");
    assert_refused("2024-05-31T12:30:00.123456", "missing");
    assert_refused("2024-05-31T12:30Z", "must look like");
    assert_refused("2024-05-31T12:30:00+0100", "+01:00");
    assert_refused("2024-05-31T12:30:00+01", "+01:00");
    assert_refused("2024-05-31T12:30:00+24:00", "out of range");
    assert_refused("2024-05-31T12:30:00 Z", "must follow");
    assert_refused("2024-05-31T12:30:00Z ", "something follows");
    assert_refused("+2024-05-31T12:30:00Z", "must look like");
    assert_refused("2024-5-31T12:30:00Z", "must look like");
    assert_refused("20240531T123000Z", "must look like");
    assert_refused("2024-05-31T12:30:00,5Z", "must follow");
    assert_refused("0000-01-01T00:00:00+00:01", "0000 to 9999");
    assert_refused("9999-12-31T23:59:59-00:01", "0000 to 9999");
}

/* A byte that does not belong there, at every place of the form of rows. */
static void one_wrong_byte_anywhere_is_refused(void **state)
{
    static const char good[] = "2024-05-31T12:30:00.123456Z";

    (void)state;
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        for (int c = 0; c < 256; c++) {
            char text[sizeof(good)];
            int64_t time_us;

            if ((c >= '0' && c <= '9') || strchr("TtZz-:.", c) != NULL)
                continue;
            memcpy(text, good, sizeof(text));
            text[at] = (char)c;
            assert_int_equal(clock_parse((struct text){text, sizeof(text) - 1},
                                         &time_us, NULL),
                             STATUS_INVALID);
        }
    }
}

static void a_shifted_clock_is_ahead_by_its_offset(void **state)
{
    struct clock shifted = {.offset_us = 3600 * CLOCK_SECOND};
    int64_t before = clock_now(NULL);
    int64_t now = clock_now(&shifted) - shifted.offset_us;
    int64_t after = clock_now(NULL);

    (void)state;
    assert_true(before <= now && now <= after);
}

static void a_clock_that_stands_moves_only_when_told(void **state)
{
    struct clock clock = {.offset_us = 3600 * CLOCK_SECOND};
    int64_t at;

    (void)state;
    clock_stand(&clock, true);
    at = clock_now(&clock);
    assert_int_equal(clock_shift(&clock, 0), at);
    assert_int_equal(clock_shift(&clock, at + CLOCK_SECOND), at);
    clock_advance(&clock, CLOCK_SECOND);
    assert_int_equal(clock_now(&clock), at + CLOCK_SECOND);
    clock_stand(&clock, false);
    assert_true(clock_now(&clock) >= at + CLOCK_SECOND);
    assert_int_equal(clock_shift(&clock, 0), 3601 * CLOCK_SECOND);
    clock_advance(&clock, CLOCK_SECOND);
    assert_int_equal(clock_shift(&clock, 0), 3602 * CLOCK_SECOND);
}

static void monotonic_time_never_goes_back(void **state)
{
    int64_t before = clock_monotonic();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_monotonic();

        assert_true(now >= before);
        before = now;
    }
}

static void durations_are_exact(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"250ms", 250000},
        {"10s", 10 * CLOCK_SECOND},
        {"5m", 300 * CLOCK_SECOND},
        {"2h", 7200 * CLOCK_SECOND},
        {"7d", 7 * 86400 * CLOCK_SECOND},
        {"1.5s", 1500000},
        {"0", 0},
        {"0s", 0},
        {"3", 3 * CLOCK_SECOND},
        {"0.000001", 1},
        {"0.001ms", 1},
        {"1.50000000000000000000s", 1500000},
        {"0.125m", 7500000},
        {"0.000000125d", 10800},
        {"106751991.1d", INT64_C(9223372031040000000)},
        {"106751991d", INT64_C(106751991) * 86400 * CLOCK_SECOND},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct diag diag;
        int64_t us;

        if (clock_parse_duration(text_of(good[i].text), &us, &diag) !=
            STATUS_OK)
            fail_msg("%s", diag.message);
        if (us != good[i].us)
            fail_msg("%s is %lld us", good[i].text, (long long)us);
    }
}

static void sizes_are_exact(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"100", 100},
        {"100B", 100},
        {"10KB", 10000},
        {"10MB", 10000000},
        {"2GB", INT64_C(2000000000)},
        {"512KiB", 512 << 10},
        {"64MiB", 64 << 20},
        {"1GiB", 1 << 30},
        {"1.5MiB", 3 << 19},
        {"0.001KB", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct diag diag;
        int64_t bytes;

        if (clock_parse_size(text_of(good[i].text), &bytes, &diag) != STATUS_OK)
            fail_msg("%s", diag.message);
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void wrong_amounts_are_refused_with_the_reason(void **state)
{
    static const struct {
        bool size;
        const char *text;
        const char *why;
    } wrong[] = {
        {false, "", "empty"},
        {false, "-1s", "negative"},
        {false, "-0", "negative"},
        {false, "+1s", "start with a digit"},
        {false, ".5s", "start with a digit"},
        {false, "5.s", "decimal point"},
        {false, "s", "start with a digit"},
        {false, "10 s", "unit is unknown"},
        {false, "10S", "unit is unknown"},
        {false, "10sec", "unit is unknown"},
        {false, "1e3", "unit is unknown"},
        {false, "1h30m", "unit is unknown"},
        {false, "10s ", "unit is unknown"},
        {false, "0x10", "unit is unknown"},
        {false, "0.0001ms", "finer than a microsecond"},
        {false, "0.0000001", "finer than a microsecond"},
        {false, "0.0000000001d", "more than nine digits"},
        {false, "106751992d", "too large"},
        {false, "9223372036854775808", "too large"},
        {false, "99999999999999999999999", "too large"},
        {false, "9223372036854.775808", "too large"},
        {true, "1.5", "no whole number of bytes"},
        {true, "0.3KiB", "no whole number of bytes"},
        {true, "10s", "unit is unknown"},
        {true, "64mib", "unit is unknown"},
        {true, "8589934592GiB", "too large"},
        {true, "-1", "negative"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct text t = text_of(wrong[i].text);
        int64_t amount = 42;
        struct diag diag;
        enum status status = wrong[i].size
                                 ? clock_parse_size(t, &amount, &diag)
                                 : clock_parse_duration(t, &amount, &diag);

        if (status != STATUS_INVALID)
            fail_msg("accepted: %s", wrong[i].text);
        if (strstr(diag.message, wrong[i].why) == NULL)
            fail_msg("%s", diag.message);
        assert_int_equal(amount, 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_times_are_written_right),
        cmocka_unit_test(a_time_out_of_range_is_written_as_the_nearest),
        cmocka_unit_test(every_day_agrees_with_gmtime),
        cmocka_unit_test(random_times_come_back),
        cmocka_unit_test(any_offset_is_normalised_to_utc),
        cmocka_unit_test(fractions_down_to_a_microsecond_are_kept),
        cmocka_unit_test(dates_that_do_not_exist_are_refused),
        cmocka_unit_test(no_text_is_no_time_and_no_amount),
        cmocka_unit_test(other_forms_of_time_are_refused),
        cmocka_unit_test(one_wrong_byte_anywhere_is_refused),
        cmocka_unit_test(a_shifted_clock_is_ahead_by_its_offset),
        cmocka_unit_test(a_clock_that_stands_moves_only_when_told),
        cmocka_unit_test(monotonic_time_never_goes_back),
        cmocka_unit_test(durations_are_exact),
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(wrong_amounts_are_refused_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
