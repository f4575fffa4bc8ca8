#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* One log whose output is in memory. */
struct sink {
    struct log log;
    char *written;
    size_t len;
};

static void open_sink(struct sink *sink, enum log_format format)
{
    *sink = (struct sink){.log = {.level = LOG_DEBUG, .format = format}};
    sink->log.out = open_memstream(&sink->written, &sink->len);
    assert_non_null(sink->log.out);
}

static void close_sink(struct sink *sink)
{
    fclose(sink->log.out);
    free(sink->written);
}

/* What follows the time, which is checked for its form. */
static const char *after_time(const char *at, const char *form)
{
    for (; *form != '\0'; form++, at++) {
        if (*form == '0')
            assert_true(*at >= '0' && *at <= '9');
        else
            assert_int_equal(*at, *form);
    }
    return at;
}

static const struct log_about about_all = {
    .consumer = "order totals",
    .topic = "event-store",
    .position = INT64_C(9007199254740993),
    .message_id = "018bcfe5-6804-7d58-9ebe-a5595a2782f2",
    .fields = "rate=12.5 why=\"two \\\"words\\\"\" id=007 ok",
};

static void text_is_time_level_message_and_pairs(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_TEXT);
    log_write(&sink.log, LOG_WARN, &about_all, "%d messages \"late\"", 3);
    assert_string_equal(after_time(sink.written, "00:00:00 "),
                        "warn  3 messages \"late\" consumer=\"order totals\" "
                        "topic=event-store position=9007199254740993 "
                        "message_id=018bcfe5-6804-7d58-9ebe-a5595a2782f2 "
                        "rate=12.5 why=\"two \\\"words\\\"\" id=007 ok\n");
    close_sink(&sink);
}

static void further_lines_of_text_are_indented(void **state)
{
    const struct log_about about = {.consumer = "orders"};
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_TEXT);
    log_write(&sink.log, LOG_ERROR, &about, "failed\n00:00:00 error fake\n");
    assert_string_equal(after_time(sink.written, "00:00:00 "),
                        "error failed consumer=orders\n"
                        "    00:00:00 error fake\n");
    close_sink(&sink);
}

static void
logfmt_has_the_same_pairs_behind_time_level_and_message(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_LOGFMT);
    log_write(&sink.log, LOG_INFO, &about_all, "started");
    assert_string_equal(
        after_time(sink.written, "ts=0000-00-00T00:00:00.000Z "),
        "level=info msg=started consumer=\"order totals\" "
        "topic=event-store position=9007199254740993 "
        "message_id=018bcfe5-6804-7d58-9ebe-a5595a2782f2 "
        "rate=12.5 why=\"two \\\"words\\\"\" id=007 ok\n");
    close_sink(&sink);
}

static void json_has_the_same_pairs_as_members(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_JSON);
    log_write(&sink.log, LOG_DEBUG, &about_all, "started");
    assert_string_equal(
        after_time(sink.written, "{\"ts\":\"0000-00-00T00:00:00.000Z\","),
        "\"level\":\"debug\",\"msg\":\"started\","
        "\"consumer\":\"order totals\",\"topic\":\"event-store\","
        "\"position\":9007199254740993,"
        "\"message_id\":\"018bcfe5-6804-7d58-9ebe-a5595a2782f2\","
        "\"rate\":12.5,\"why\":\"two \\\"words\\\"\",\"id\":\"007\","
        "\"ok\":true}\n");
    close_sink(&sink);
}

static void names_are_strings_in_json_whatever_they_look_like(void **state)
{
    const struct log_about about = {.consumer = "12", .topic = "null"};
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_JSON);
    log_write(&sink.log, LOG_INFO, &about, "x");
    assert_non_null(
        strstr(sink.written, "\"consumer\":\"12\",\"topic\":\"null\"}"));
    close_sink(&sink);
}

static void pairs_without_a_value_are_left_out(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_LOGFMT);
    log_write(&sink.log, LOG_INFO, NULL, "two words");
    assert_string_equal(
        after_time(sink.written, "ts=0000-00-00T00:00:00.000Z "),
        "level=info msg=\"two words\"\n");
    close_sink(&sink);
}

/* All bytes but NUL, in message, name and field, in every format. */
static void hostile_bytes_stay_within_one_valid_entry(void **state)
{
    char hostile[256];
    struct buffer fields = BUFFER_EMPTY;
    struct log_about about = {.consumer = hostile, .message_id = hostile};

    (void)state;
    for (int c = 1; c < 256; c++)
        hostile[c - 1] = (char)c;
    hostile[255] = '\0';
    log_field(&fields, "first", text_of(hostile));
    log_field(&fields, "last", TEXT_LITERAL(""));
    about.fields = fields.data;
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        struct sink sink;
        struct text entry;

        open_sink(&sink, (enum log_format)format);
        log_write(&sink.log, LOG_INFO, &about, "%s\xC2\x9B", hostile);
        entry = (struct text){sink.written, sink.len - 1};
        assert_int_equal(sink.written[sink.len - 1], '\n');
        assert_true(text_utf8_valid(entry));
        for (size_t i = 0; i < entry.len; i++) {
            unsigned char c = (unsigned char)entry.data[i];

            if (format == LOG_TEXT && c == '\n')
                assert_memory_equal(entry.data + i, "\n    ", 5);
            else
                assert_true(c >= 0x20 && c != 0x7F);
        }
        assert_null(strstr(sink.written, "\xC2\x9B"));
        if (format == LOG_JSON)
            assert_int_equal(json_check(entry, NULL, NULL), STATUS_OK);
        close_sink(&sink);
    }
    buffer_free(&fields);
}

static void fields_are_quoted_where_they_must_be(void **state)
{
    struct buffer fields = BUFFER_EMPTY;

    (void)state;
    log_field(&fields, "a", TEXT_LITERAL("plain-1.5/x"));
    log_field(&fields, "b", TEXT_LITERAL(""));
    log_field(&fields, "c", TEXT_LITERAL("x=y"));
    log_field(&fields, "d", TEXT_LITERAL("a\\\"\n\r\t\x1B\x7F"));
    log_field(&fields, "e", TEXT_LITERAL("caf\xC3\xA9"));
    log_field(&fields, "f", TEXT_NONE);
    assert_string_equal(fields.data, "a=plain-1.5/x b=\"\" c=\"x=y\" "
                                     "d=\"a\\\\\\\"\\n\\r\\t\\u001b\\u007f\" "
                                     "e=\"caf\xC3\xA9\" f=\"\"");
    buffer_free(&fields);
}

static void lower_levels_and_a_closed_log_write_nothing(void **state)
{
    struct log closed = {.out = NULL};
    struct sink sink;

    (void)state;
    open_sink(&sink, LOG_TEXT);
    sink.log.level = LOG_WARN;
    log_write(&sink.log, LOG_DEBUG, NULL, "x");
    log_write(&sink.log, LOG_INFO, NULL, "x");
    fflush(sink.log.out);
    assert_int_equal(sink.len, 0);
    log_write(&sink.log, LOG_WARN, NULL, "x");
    assert_true(sink.len > 0);
    log_write(&closed, LOG_ERROR, NULL, "x");
    log_write(NULL, LOG_ERROR, NULL, "x");
    close_sink(&sink);
}

static void the_time_is_that_of_the_shifted_clock(void **state)
{
    struct clock clock = {.offset_us = 0};
    struct sink sink;

    (void)state;
    clock.offset_us = INT64_C(64060588800000000) - clock_now(NULL);
    open_sink(&sink, LOG_LOGFMT);
    sink.log.clock = &clock;
    log_write(&sink.log, LOG_INFO, NULL, "x");
    assert_memory_equal(sink.written, "ts=4000-01-01T00:00:", 20);
    close_sink(&sink);
}

static void a_log_that_cannot_be_written_leaves_errno_alone(void **state)
{
    struct log log = {.out = fopen("/dev/full", "w")};

    (void)state;
    assert_non_null(log.out);
    errno = EINTR;
    log_write(&log, LOG_ERROR, &about_all, "there is no room for this");
    assert_int_equal(errno, EINTR);
    fclose(log.out);
}

static void words_name_levels_and_formats(void **state)
{
    enum log_level level = LOG_ERROR;
    enum log_format format = LOG_TEXT;

    (void)state;
    assert_true(log_parse_level("debug", &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_true(log_parse_level("error", &level));
    assert_int_equal(level, LOG_ERROR);
    assert_false(log_parse_level("Warn", &level));
    assert_false(log_parse_level("", &level));
    assert_int_equal(level, LOG_ERROR);
    assert_true(log_parse_format("logfmt", &format));
    assert_int_equal(format, LOG_LOGFMT);
    assert_true(log_parse_format("json", &format));
    assert_false(log_parse_format("xml", &format));
    assert_int_equal(format, LOG_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_time_level_message_and_pairs),
        cmocka_unit_test(further_lines_of_text_are_indented),
        cmocka_unit_test(
            logfmt_has_the_same_pairs_behind_time_level_and_message),
        cmocka_unit_test(json_has_the_same_pairs_as_members),
        cmocka_unit_test(names_are_strings_in_json_whatever_they_look_like),
        cmocka_unit_test(pairs_without_a_value_are_left_out),
        cmocka_unit_test(hostile_bytes_stay_within_one_valid_entry),
        cmocka_unit_test(fields_are_quoted_where_they_must_be),
        cmocka_unit_test(lower_levels_and_a_closed_log_write_nothing),
        cmocka_unit_test(the_time_is_that_of_the_shifted_clock),
        cmocka_unit_test(a_log_that_cannot_be_written_leaves_errno_alone),
        cmocka_unit_test(words_name_levels_and_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
