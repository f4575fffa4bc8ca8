#include "base/log_limit.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define START (100 * CLOCK_SECOND)

/* A line of that kind: written, or kept with this text. */
static bool say(struct log_limit *limit, uint64_t kind, int64_t now,
                const char *text, int64_t *left_out)
{
    struct log_line line = {.level = LOG_WARN};

    if (log_limit_pass(limit, kind, now, left_out))
        return true;
    buffer_append_string(&line.message, text);
    log_limit_keep(limit, kind, &line);
    return false;
}

static int say_often(struct log_limit *limit, uint64_t kind, int64_t now,
                     int times)
{
    int64_t left_out;
    int written = 0;

    for (int i = 0; i < times; i++)
        written += say(limit, kind, now, "x", &left_out);
    return written;
}

static void the_first_few_pass_and_then_one_each_pause(void **state)
{
    struct log_limit *limit = log_limit_new();
    int64_t left_out = -1;

    (void)state;
    assert_int_equal(say_often(limit, 1, START, 1000), LOG_LIMIT_FIRST);
    assert_false(say(limit, 1, START + LOG_LIMIT_PAUSE - 1, "x", &left_out));
    assert_true(say(limit, 1, START + LOG_LIMIT_PAUSE, "x", &left_out));
    assert_int_equal(left_out, 1000 - LOG_LIMIT_FIRST + 1);
    assert_false(say(limit, 1, START + LOG_LIMIT_PAUSE, "x", &left_out));
    log_limit_free(limit);
}

static void a_storm_of_a_minute_is_a_handful_of_lines(void **state)
{
    struct log_limit *limit = log_limit_new();
    int written = 0;

    (void)state;
    for (int64_t ms = 0; ms < 60000; ms++)
        written += say_often(limit, 1, START + ms * 1000, 1);
    assert_true(written <= LOG_LIMIT_FIRST + 2);
    log_limit_free(limit);
}

static void kinds_do_not_count_for_each_other(void **state)
{
    struct log_limit *limit = log_limit_new();

    (void)state;
    for (uint64_t kind = 1; kind <= LOG_LIMIT_KINDS; kind++)
        assert_int_equal(say_often(limit, kind, START, 20), LOG_LIMIT_FIRST);
    log_limit_free(limit);
}

static void after_a_quiet_time_all_is_as_at_first(void **state)
{
    struct log_limit *limit = log_limit_new();
    int64_t later = START + LOG_LIMIT_QUIET;

    (void)state;
    assert_int_equal(say_often(limit, 1, START, LOG_LIMIT_FIRST),
                     LOG_LIMIT_FIRST);
    assert_int_equal(say_often(limit, 1, later, 100), LOG_LIMIT_FIRST);
    log_limit_free(limit);
}

static void forgotten_all_is_as_at_first(void **state)
{
    struct log_limit *limit = log_limit_new();
    struct log_line line;
    int64_t left_out;

    (void)state;
    assert_int_equal(say_often(limit, 1, START, 100), LOG_LIMIT_FIRST);
    log_limit_forget(limit);
    assert_false(log_limit_next(limit, START, true, &line, &left_out));
    assert_int_equal(say_often(limit, 1, START, 100), LOG_LIMIT_FIRST);
    log_limit_free(limit);
}

static void what_was_left_out_last_comes_up_by_itself(void **state)
{
    struct log_limit *limit = log_limit_new();
    struct log_line line;
    int64_t left_out;

    (void)state;
    assert_int_equal(say_often(limit, 1, START, 10), LOG_LIMIT_FIRST);
    assert_false(say(limit, 1, START, "the last", &left_out));
    assert_false(log_limit_next(limit, START + LOG_LIMIT_PAUSE - 1, false,
                                &line, &left_out));
    assert_true(log_limit_next(limit, START + LOG_LIMIT_PAUSE, false, &line,
                               &left_out));
    assert_string_equal(line.message.data, "the last");
    assert_int_equal(line.level, LOG_WARN);
    assert_int_equal(left_out, 10 - LOG_LIMIT_FIRST);
    log_line_free(&line);
    /* it was one, so the next waits its time again */
    assert_false(say(limit, 1, START + LOG_LIMIT_PAUSE, "x", &left_out));
    log_limit_free(limit);
}

static void at_the_end_all_of_it_is_had(void **state)
{
    struct log_limit *limit = log_limit_new();
    struct log_line line;
    int64_t left_out, total = 0;
    int lines = 0;

    (void)state;
    for (uint64_t kind = 1; kind <= 3; kind++)
        (void)say_often(limit, kind, START, 20);
    while (log_limit_next(limit, START, true, &line, &left_out)) {
        lines++;
        total += left_out + 1;
        log_line_free(&line);
    }
    assert_int_equal(lines, 3);
    assert_int_equal(total, 3 * (20 - LOG_LIMIT_FIRST));
    log_limit_free(limit);
}

static void more_kinds_than_there_is_room_for_are_limited_together(void **state)
{
    struct log_limit *limit = log_limit_new();
    int written = 0;

    (void)state;
    for (uint64_t kind = 1; kind <= 10 * LOG_LIMIT_KINDS; kind++)
        written += say_often(limit, kind, START, 1);
    assert_true(written >= LOG_LIMIT_KINDS);
    assert_true(written <= LOG_LIMIT_KINDS + LOG_LIMIT_FIRST);
    /* those of long ago make room */
    assert_true(say_often(limit, 1, START + LOG_LIMIT_QUIET, 1));
    log_limit_free(limit);
}

/* --- through the log ------------------------------------------------------ */

struct sink {
    struct log log;
    char *written;
    size_t len;
};

static void open_sink(struct sink *sink, enum log_format format)
{
    *sink = (struct sink){.log = {.format = format, .limit = log_limit_new()}};
    sink->log.out = open_memstream(&sink->written, &sink->len);
    assert_non_null(sink->log.out);
}

static void close_sink(struct sink *sink)
{
    fclose(sink->log.out);
    free(sink->written);
    log_limit_free(sink->log.limit);
}

static int lines_of(const struct sink *sink)
{
    int lines = 0;

    for (size_t i = 0; i < sink->len; i++)
        lines += sink->written[i] == '\n';
    return lines;
}

static void storm(struct sink *sink, const struct log_about *about)
{
    for (int i = 1; i <= 100; i++)
        log_write(&sink->log, LOG_ERROR, about, "failed with %d", i);
    fflush(sink->log.out);
}

/* Told later it would look like news of what is over by then. */
static void
a_line_that_is_told_later_has_the_time_of_what_it_tells(void **state)
{
    static const struct log_about about = {.consumer = "orders"};
    struct clock clock = {.stands = true, .stands_at = START};
    struct sink sink;
    char said[CLOCK_TEXT_SIZE];

    (void)state;
    clock_format(START, said);
    open_sink(&sink, LOG_LOGFMT);
    sink.log.clock = &clock;
    storm(&sink, &about);
    clock_advance(&clock, 3600 * CLOCK_SECOND);
    log_tell(&sink.log, true);
    assert_int_equal(lines_of(&sink), LOG_LIMIT_FIRST + 1);
    for (const char *line = sink.written; *line != '\0';
         line = strchr(line, '\n') + 1)
        assert_memory_equal(line + strlen("ts="), said, 23);
    close_sink(&sink);
}

static void a_repeated_line_says_how_many_were_left_out(void **state)
{
    static const char *const ends[] = {
        [LOG_TEXT] = "failed with 100 consumer=orders position=7 "
                     "message_id=m-1 why=no repeats=94\n",
        [LOG_LOGFMT] = "msg=\"failed with 100\" consumer=orders position=7 "
                       "message_id=m-1 why=no repeats=94\n",
        [LOG_JSON] = "\"msg\":\"failed with 100\",\"consumer\":\"orders\","
                     "\"position\":7,\"message_id\":\"m-1\",\"why\":\"no\","
                     "\"repeats\":94}\n",
    };
    const struct log_about about = {.consumer = "orders",
                                    .position = 7,
                                    .message_id = "m-1",
                                    .fields = "why=no"};

    (void)state;
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        struct sink sink;

        open_sink(&sink, (enum log_format)format);
        storm(&sink, &about);
        assert_int_equal(lines_of(&sink), LOG_LIMIT_FIRST);
        assert_null(strstr(sink.written, "repeats"));
        log_tell(&sink.log, false);
        assert_int_equal(lines_of(&sink), LOG_LIMIT_FIRST);
        log_tell(&sink.log, true);
        assert_int_equal(lines_of(&sink), LOG_LIMIT_FIRST + 1);
        assert_string_equal(sink.written + sink.len - strlen(ends[format]),
                            ends[format]);
        close_sink(&sink);
    }
}

static void other_consumers_topics_levels_and_places_are_not_alike(void **state)
{
    const struct log_about abouts[] = {
        {.consumer = "orders"}, {.consumer = "order"},
        {.topic = "orders"},    {.consumer = "orders", .alike = "another"},
        {.consumer = NULL},
    };
    int kinds = (int)(sizeof(abouts) / sizeof(abouts[0]));
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_LOGFMT);
    for (int i = 0; i < kinds; i++)
        storm(&sink, &abouts[i]);
    assert_int_equal(lines_of(&sink), kinds * LOG_LIMIT_FIRST);
    for (int level = LOG_INFO; level <= LOG_ERROR; level++)
        for (int i = 0; i < 100; i++)
            log_write(&sink.log, (enum log_level)level, NULL, "another place");
    fflush(sink.log.out);
    assert_int_equal(lines_of(&sink), (kinds + 3) * LOG_LIMIT_FIRST);
    close_sink(&sink);
}

static void what_is_asked_for_line_by_line_has_no_limit(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_TEXT);
    storm(&sink, &(struct log_about){.every = true});
    assert_int_equal(lines_of(&sink), 100);
    close_sink(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_few_pass_and_then_one_each_pause),
        cmocka_unit_test(a_storm_of_a_minute_is_a_handful_of_lines),
        cmocka_unit_test(kinds_do_not_count_for_each_other),
        cmocka_unit_test(after_a_quiet_time_all_is_as_at_first),
        cmocka_unit_test(forgotten_all_is_as_at_first),
        cmocka_unit_test(what_was_left_out_last_comes_up_by_itself),
        cmocka_unit_test(at_the_end_all_of_it_is_had),
        cmocka_unit_test(
            more_kinds_than_there_is_room_for_are_limited_together),
        cmocka_unit_test(
            a_line_that_is_told_later_has_the_time_of_what_it_tells),
        cmocka_unit_test(a_repeated_line_says_how_many_were_left_out),
        cmocka_unit_test(
            other_consumers_topics_levels_and_places_are_not_alike),
        cmocka_unit_test(what_is_asked_for_line_by_line_has_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
