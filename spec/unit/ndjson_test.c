/*
 * NDJSON reader: what a line may hold, what it may not and how that is said,
 * and that neither the way bytes arrive nor their number changes the events.
 */
/* The files of the program itself are in no library. */
#include "cli/ndjson.c"
#include "cli/ndjson_event.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAYLOAD_LIMIT 1000000
#define HEAD                                                                   \
    "{\"aggregate_type\":\"bank.Account\",\"aggregate_id\":\"A-1\",\"type\":"  \
    "\"opened\",\"payload\":"
#define GOOD HEAD "{\"a\":1}"

static int file_of(const char *data, size_t len)
{
    int fd = memfd_create("events", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* Reads until the end or an error; *count is the number of events. */
static enum status read_all(const char *data, size_t len, size_t *count,
                            struct diag *diag)
{
    int fd = file_of(data, len);
    struct ndjson *reader = ndjson_open(NDJSON_APPEND, fd, "f", PAYLOAD_LIMIT);
    struct append_event event;
    enum status status;
    bool more = true;

    *count = 0;
    for (;;) {
        status = ndjson_next(reader, &event, &more, diag);
        if (status != STATUS_OK || !more)
            break;
        ++*count;
    }
    ndjson_close(reader);
    close(fd);
    return status;
}

/* The message of the first line that is refused. */
static void expect_error(const char *text, const char *message)
{
    struct diag diag;
    size_t count;

    assert_int_equal(read_all(text, strlen(text), &count, &diag),
                     STATUS_INVALID);
    if (strstr(diag.message, message) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", message, diag.message);
}

static void expect_count(const char *text, size_t wanted)
{
    struct diag diag;
    size_t count;

    assert_int_equal(read_all(text, strlen(text), &count, &diag), STATUS_OK);
    assert_int_equal(count, wanted);
}

/* One good line; slices stay valid until the reader is closed. */
struct one {
    int fd;
    struct ndjson *reader;
    struct append_event event;
};

static struct one read_one(const char *text)
{
    struct one one = {.fd = file_of(text, strlen(text))};
    struct diag diag = {.message = ""};
    bool more = false;

    one.reader = ndjson_open(NDJSON_APPEND, one.fd, "f", PAYLOAD_LIMIT);
    one.event = (struct append_event){.revision = -1};
    if (ndjson_next(one.reader, &one.event, &more, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    assert_true(more);
    return one;
}

static void close_one(struct one *one)
{
    ndjson_close(one->reader);
    close(one->fd);
}

static void assert_text(struct text text, const char *wanted)
{
    assert_non_null(text.data);
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

static void reads_every_field(void **state)
{
    struct one one = read_one(
        HEAD "[1, 2.50 ],\"metadata\":{ \"by\" :1},"
             "\"id\":\"0190F6A0-1111-7222-8333-444455556666\","
             "\"revision\":3,\"expected\":41,"
             "\"occurred_at\":\"2024-02-29T12:00:00.000001+02:00\"}");
    char id[UUID_TEXT_LEN + 1];

    (void)state;
    assert_text(one.event.aggregate_type, "bank.Account");
    assert_text(one.event.aggregate_id, "A-1");
    assert_text(one.event.type, "opened");
    assert_text(one.event.payload, "[1, 2.50 ]");
    assert_text(one.event.metadata, "{ \"by\" :1}");
    assert_true(one.event.has_id);
    uuid_format(&one.event.id, id);
    assert_string_equal(id, "0190f6a0-1111-7222-8333-444455556666");
    assert_int_equal(one.event.revision, 3);
    assert_int_equal(one.event.expect, APPEND_AT);
    assert_int_equal(one.event.expected, 41);
    assert_true(one.event.has_occurred_at);
    assert_int_equal(one.event.occurred_at, INT64_C(1709200800000001));
    close_one(&one);
}

static void leaves_optional_fields_unset(void **state)
{
    struct one one = read_one(GOOD "}");

    (void)state;
    assert_null(one.event.metadata.data);
    assert_false(one.event.has_id);
    assert_false(one.event.has_occurred_at);
    assert_int_equal(one.event.revision, 0);
    assert_int_equal(one.event.expect, APPEND_ANY);
    close_one(&one);
}

static void takes_the_payload_byte_for_byte(void **state)
{
    static const char payload[] =
        "{ \"b\" : 1.0e+2,\"a\":\"\\u00e9\\u0000 }]\\\"\",\"a\":[ ]\t}";
    struct one one;
    char line[512];

    (void)state;
    snprintf(line, sizeof(line), HEAD "  %s  }\r\n", payload);
    one = read_one(line);
    assert_text(one.event.payload, payload);
    close_one(&one);
}

static void decodes_escapes_of_names(void **state)
{
    struct one one = read_one(
        "{\"aggregate\\u005ftype\":\"t\\u00e9\",\"aggregate_id\":"
        "\"\\ud83c\\udf19\",\"type\":\"a\\/b\",\"payload\":1}");

    (void)state;
    assert_text(one.event.aggregate_type, "t\xc3\xa9");
    assert_text(one.event.aggregate_id, "\xf0\x9f\x8c\x99");
    assert_text(one.event.type, "a/b");
    close_one(&one);
}

static void reads_expected_as_number_or_word(void **state)
{
    struct one any = read_one(GOOD ",\"expected\":\"any\"}");
    struct one none = read_one(GOOD ",\"expected\":\"none\"}");
    struct one zero = read_one(GOOD ",\"expected\":0}");

    (void)state;
    assert_int_equal(any.event.expect, APPEND_ANY);
    assert_int_equal(none.event.expect, APPEND_NONE);
    assert_int_equal(zero.event.expect, APPEND_AT);
    assert_int_equal(zero.event.expected, 0);
    close_one(&any);
    close_one(&none);
    close_one(&zero);
    expect_error(GOOD ",\"expected\":\"some\"}",
                 "f:1: expected must be a sequence number, \"any\" or "
                 "\"none\", not another word");
    expect_error(GOOD ",\"expected\":true}", "f:1: expected must be");
    expect_error(GOOD ",\"expected\":-1}",
                 "f:1: expected must be a whole number from 0");
    expect_error(GOOD ",\"expected\":9223372036854775808}",
                 "not 9223372036854775808");
}

static void skips_empty_lines_and_takes_any_line_end(void **state)
{
    (void)state;
    expect_count("", 0);
    expect_count("\n\r\n \t\n", 0);
    expect_count(GOOD "}\r\n\r\n" GOOD "}\n\n" GOOD "}", 3);
}

static void names_the_line(void **state)
{
    (void)state;
    expect_error(GOOD "}\n\n\r\n[]\n", "f:4: each line must be an object, not "
                                       "an array");
}

static void refuses_what_is_not_json(void **state)
{
    struct diag diag;
    size_t count;

    (void)state;
    expect_error("{\"type\" 1}", "f:1: not JSON");
    expect_error("{\"type\" 1}", "8");
    expect_error(GOOD "} x", "f:1: not JSON");
    expect_error(HEAD "NaN}", "f:1: not JSON");
    expect_error(HEAD "\"\xff\"}", "f:1: not JSON");
    expect_error(HEAD "\"\xff\"}", "UTF-8");
    expect_error(HEAD "\"\\ud800\"}", "f:1: not JSON");
    expect_error("\"text\"", "f:1: each line must be an object, not a string");
    assert_int_equal(read_all("{\"a\0\":1}", 8, &count, &diag), STATUS_INVALID);
    assert_string_equal(diag.message, "f:1: NUL byte at offset 3");
}

static void refuses_missing_twofold_and_unknown_fields(void **state)
{
    (void)state;
    expect_error("{}", "f:1: field \"aggregate_type\" is missing");
    expect_error("{\"aggregate_type\":\"t\",\"aggregate_id\":\"i\","
                 "\"payload\":1}",
                 "f:1: field \"type\" is missing");
    expect_error(HEAD "1,\"type\":\"x\"}",
                 "f:1: field \"type\" is there twice");
    expect_error(HEAD "1,\"payload\":1}",
                 "f:1: field \"payload\" is there twice");
    expect_error(HEAD "1,\"agregate_id\":\"x\"}",
                 "f:1: unknown field \"agregate_id\"; did you mean "
                 "\"aggregate_id\"?");
    expect_error(HEAD "1,\"zzzzzzzzz\":\"x\"}",
                 "f:1: unknown field \"zzzzzzzzz\"");
}

static void refuses_values_of_another_type(void **state)
{
    (void)state;
    expect_error("{\"aggregate_type\":1}",
                 "f:1: aggregate_type must be a string, not a number");
    expect_error("{\"aggregate_id\":null}",
                 "f:1: aggregate_id must be a string, not null");
    expect_error("{\"type\":{}}", "f:1: type must be a string, not an object");
    expect_error("{\"metadata\":[]}",
                 "f:1: metadata must be an object, not an array");
    expect_error("{\"metadata\":null}",
                 "f:1: metadata must be an object, not null");
    expect_error("{\"id\":7}", "f:1: id must be a string, not a number");
    expect_error("{\"id\":\"0190f6a0\"}", "f:1: id is not a UUID");
    expect_error("{\"id\":\"{190f6a0-1111-7222-8333-44445555666}\"}",
                 "f:1: id is not a UUID");
    expect_error("{\"revision\":\"1\"}",
                 "f:1: revision must be a number, not a string");
    expect_error("{\"revision\":1.5}", "f:1: revision must be a whole number");
    expect_error("{\"revision\":-1}", "f:1: revision must be a whole number");
    expect_error("{\"revision\":2147483648}",
                 "f:1: revision must be a whole number from 0 to 2147483647, "
                 "not 2147483648");
    expect_error("{\"occurred_at\":5}",
                 "f:1: occurred_at must be a string, not a number");
    expect_error("{\"occurred_at\":\"2023-02-29T00:00:00Z\"}",
                 "f:1: occurred_at");
}

static char *repeated(char c, size_t count)
{
    char *text = malloc(count + 1);

    assert_non_null(text);
    memset(text, c, count);
    text[count] = '\0';
    return text;
}

static void bounds_the_line(void **state)
{
    size_t limit = PAYLOAD_LIMIT + 65536;
    char *fits = repeated(' ', limit);
    char *exceeds = repeated(' ', limit + 1);

    (void)state;
    expect_count(fits, 0);
    expect_error(exceeds, "f:1: the line is longer than 1065536 bytes");
    free(fits);
    free(exceeds);
}

/* Bytes of the events stay where they are while blocks come and go. */
static void keeps_events_until_they_are_released(void **state)
{
    enum { LINES = 3000 };
    static struct append_event events[LINES];
    FILE *out = tmpfile();
    struct diag diag;
    struct ndjson *reader;
    bool more;

    (void)state;
    assert_non_null(out);
    for (int i = 0; i < LINES; i++)
        fprintf(out,
                "{\"aggregate_type\":\"t\",\"aggregate_id\":\"id-%d\","
                "\"type\":\"e\",\"payload\":\"%0*d\"}\n",
                i, 1 + i * 7919 % 997, i);
    rewind(out);
    reader = ndjson_open(NDJSON_APPEND, fileno(out), "f", PAYLOAD_LIMIT);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LINES / 3; i++) {
            assert_int_equal(ndjson_next(reader, &events[i], &more, &diag),
                             STATUS_OK);
            assert_true(more);
        }
        for (int i = 0; i < LINES / 3; i++) {
            int line = round * (LINES / 3) + i;
            char wanted[1100];

            snprintf(wanted, sizeof(wanted), "\"%0*d\"", 1 + line * 7919 % 997,
                     line);
            assert_text(events[i].payload, wanted);
            snprintf(wanted, sizeof(wanted), "id-%d", line);
            assert_text(events[i].aggregate_id, wanted);
        }
        assert_int_equal(ndjson_line(reader), (round + 1) * (LINES / 3));
        assert_true(ndjson_held(reader) > 0);
        ndjson_release(reader);
        assert_int_equal(ndjson_held(reader), 0);
    }
    assert_int_equal(ndjson_next(reader, &events[0], &more, &diag), STATUS_OK);
    assert_false(more);
    ndjson_close(reader);
    fclose(out);
}

/* A pipe gives what there is: here a line in pieces. */
static void reads_a_line_that_comes_in_pieces(void **state)
{
    static const char *const pieces[] = {"{\"aggregate_type\":\"t\",\"aggreg",
                                         "ate_id\":\"i\",\"type\":\"e\",",
                                         "\"payload\":7}\n"};
    struct append_event event = {.revision = -1};
    struct ndjson *reader;
    struct diag diag;
    int ends[2];
    bool more = false;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        assert_int_equal(write(ends[1], pieces[i], strlen(pieces[i])),
                         (ssize_t)strlen(pieces[i]));
    reader = ndjson_open(NDJSON_APPEND, ends[0], "f", PAYLOAD_LIMIT);
    /* the writer is still there: the line must do without the end */
    assert_int_equal(ndjson_next(reader, &event, &more, &diag), STATUS_OK);
    assert_true(more);
    assert_text(event.payload, "7");
    close(ends[1]);
    assert_int_equal(ndjson_next(reader, &event, &more, &diag), STATUS_OK);
    assert_false(more);
    ndjson_close(reader);
    close(ends[0]);
}

static void says_when_it_cannot_read(void **state)
{
    struct append_event event;
    struct diag diag;
    bool more;
    struct ndjson *reader = ndjson_open(NDJSON_APPEND, -1, "f", PAYLOAD_LIMIT);

    (void)state;
    assert_int_equal(ndjson_next(reader, &event, &more, &diag), STATUS_FAILED);
    assert_non_null(strstr(diag.message, "cannot read f: "));
    ndjson_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_field),
        cmocka_unit_test(leaves_optional_fields_unset),
        cmocka_unit_test(takes_the_payload_byte_for_byte),
        cmocka_unit_test(decodes_escapes_of_names),
        cmocka_unit_test(reads_expected_as_number_or_word),
        cmocka_unit_test(skips_empty_lines_and_takes_any_line_end),
        cmocka_unit_test(names_the_line),
        cmocka_unit_test(refuses_what_is_not_json),
        cmocka_unit_test(refuses_missing_twofold_and_unknown_fields),
        cmocka_unit_test(refuses_values_of_another_type),
        cmocka_unit_test(bounds_the_line),
        cmocka_unit_test(keeps_events_until_they_are_released),
        cmocka_unit_test(reads_a_line_that_comes_in_pieces),
        cmocka_unit_test(says_when_it_cannot_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
