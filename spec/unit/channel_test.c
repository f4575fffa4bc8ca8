/*
 * The channel between the supervisor and a worker: what one side writes the
 * other reads, however it is cut, and what no side sends is refused.
 */
#include "run/channel.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const struct channel_message from_worker[] = {
    {CHANNEL_READY, 3, {"postgresql://x@h/d", 18}},
    {CHANNEL_FAILED, STATUS_CONFIG, {"handlers/a.lua:3: \xc3\xa9", 20}},
    {CHANNEL_STOPPED, 0, {"", 0}},
};

#define COUNT (sizeof(from_worker) / sizeof(from_worker[0]))

static void expect(struct channel_reader *reader,
                   const struct channel_message *wanted)
{
    struct channel_message message;
    struct diag diag;
    bool found;

    assert_int_equal(
        channel_reader_next(reader, CHANNEL_WORKER, &message, &found, &diag),
        STATUS_OK);
    assert_true(found);
    assert_int_equal(message.type, wanted->type);
    assert_int_equal(message.number, wanted->number);
    assert_true(text_equal(message.text, wanted->text));
}

static void expect_nothing(struct channel_reader *reader)
{
    struct channel_message message;
    struct diag diag;
    bool found;

    assert_int_equal(
        channel_reader_next(reader, CHANNEL_WORKER, &message, &found, &diag),
        STATUS_OK);
    assert_false(found);
}

static void messages_come_as_they_were_sent_however_they_are_cut(void **state)
{
    struct buffer bytes = BUFFER_EMPTY;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        channel_write(&bytes, &from_worker[i]);
    for (size_t piece = 1; piece <= bytes.len; piece++) {
        struct channel_reader reader = {.start = 0};
        size_t read = 0;

        for (size_t at = 0; at < bytes.len; at += piece) {
            size_t left = bytes.len - at;
            struct channel_message message;
            struct diag diag;
            bool found = true;

            channel_reader_add(&reader, bytes.data + at,
                               left < piece ? left : piece);
            while (found) {
                assert_int_equal(channel_reader_next(&reader, CHANNEL_WORKER,
                                                     &message, &found, &diag),
                                 STATUS_OK);
                if (!found)
                    break;
                assert_int_equal(message.type, from_worker[read].type);
                assert_int_equal(message.number, from_worker[read].number);
                assert_true(text_equal(message.text, from_worker[read].text));
                read++;
            }
        }
        assert_int_equal(read, COUNT);
        channel_reader_free(&reader);
    }
    buffer_free(&bytes);
}

static void a_part_of_a_message_is_none(void **state)
{
    struct buffer bytes = BUFFER_EMPTY;

    (void)state;
    channel_write(&bytes, &from_worker[0]);
    for (size_t len = 0; len < bytes.len; len++) {
        struct channel_reader reader = {.start = 0};

        channel_reader_add(&reader, bytes.data, len);
        expect_nothing(&reader);
        channel_reader_add(&reader, bytes.data + len, bytes.len - len);
        expect(&reader, &from_worker[0]);
        expect_nothing(&reader);
        channel_reader_free(&reader);
    }
    buffer_free(&bytes);
}

/* A frame as a worker could write it that does not keep to the rules. */
static void put(struct buffer *out, uint32_t body, int type, uint64_t number,
                const char *text, size_t len)
{
    for (int i = 0; i < 4; i++)
        buffer_append_char(out, (char)(body >> 8 * i & 0xff));
    buffer_append_char(out, (char)type);
    for (int i = 0; i < 8; i++)
        buffer_append_char(out, (char)(number >> 8 * i & 0xff));
    buffer_append(out, text, len);
}

static void refused(uint32_t body, int type, int64_t number, const char *text,
                    size_t len)
{
    struct channel_reader reader = {.start = 0};
    struct buffer bytes = BUFFER_EMPTY;
    struct channel_message message;
    struct diag diag;
    bool found;

    put(&bytes, body, type, (uint64_t)number, text, len);
    channel_reader_add(&reader, bytes.data, bytes.len);
    assert_int_equal(
        channel_reader_next(&reader, CHANNEL_WORKER, &message, &found, &diag),
        STATUS_INVALID);
    assert_true(strlen(diag.message) > 0);
    channel_reader_free(&reader);
    buffer_free(&bytes);
}

static void what_no_worker_sends_is_refused(void **state)
{
    char *large = mem_alloc(CHANNEL_TEXT_MAX + 2);

    (void)state;
    memset(large, 'x', CHANNEL_TEXT_MAX + 1);
    refused(9, 0, 0, "", 0);
    refused(9, 255, 0, "", 0);
    refused(9, CHANNEL_STOP, 0, "", 0); /* the supervisor's */
    refused(9, CHANNEL_WAKE, 0, "", 0);
    refused(9, CHANNEL_READY, -1, "", 0);
    refused(9, CHANNEL_READY, INT64_MAX, "", 0);
    refused(9, CHANNEL_FAILED, 0, "", 0); /* OK is no failure */
    refused(9, CHANNEL_FAILED, 1, "", 0);
    refused(9, CHANNEL_FAILED, STATUS_STOPPED - 1, "", 0);
    refused(9, CHANNEL_FAILED, INT64_MIN, "", 0);
    refused(9, CHANNEL_STOPPED, 1, "", 0);
    refused(10, CHANNEL_STOPPED, 0, "x", 1);
    refused(10, CHANNEL_READY, 0, "\xff", 1);
    refused(9 + 5000, CHANNEL_READY, 0, large, 5000);
    /* lengths that cannot be, before the rest has come */
    refused(0, 0, 0, "", 0);
    refused(8, CHANNEL_STOPPED, 0, "", 0);
    refused(9 + CHANNEL_TEXT_MAX + 1, CHANNEL_READY, 0, "", 0);
    refused(UINT32_MAX, CHANNEL_READY, 0, "", 0);
    mem_free(large);
}

static void a_text_that_is_too_long_is_cut_between_characters(void **state)
{
    struct channel_reader reader = {.start = 0};
    struct buffer bytes = BUFFER_EMPTY;
    struct channel_message message;
    char text[2 * DIAG_MESSAGE_SIZE + 1];
    struct diag diag;
    bool found;

    (void)state;
    text[0] = 'x'; /* so that the bound falls into a character */
    for (size_t i = 1; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    channel_write(&bytes, &(struct channel_message){
                              CHANNEL_FAILED, STATUS_FAILED,
                              (struct text){text, sizeof(text) - 2}});
    channel_reader_add(&reader, bytes.data, bytes.len);
    assert_int_equal(
        channel_reader_next(&reader, CHANNEL_WORKER, &message, &found, &diag),
        STATUS_OK);
    assert_true(found);
    assert_int_equal(message.text.len, DIAG_MESSAGE_SIZE - 1);
    channel_reader_free(&reader);
    buffer_free(&bytes);
}

static void a_message_goes_through_a_socket_and_its_loss_is_told(void **state)
{
    struct channel_reader reader = {.start = 0};
    struct diag diag;
    char bytes[256];
    int ends[2];
    ssize_t n;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(channel_send(ends[0], &from_worker[i], &diag),
                         STATUS_OK);
    n = read(ends[1], bytes, sizeof(bytes));
    assert_true(n > 0);
    channel_reader_add(&reader, bytes, (size_t)n);
    for (size_t i = 0; i < COUNT; i++)
        expect(&reader, &from_worker[i]);
    expect_nothing(&reader);
    close(ends[1]);
    assert_int_equal(channel_send(ends[0], &from_worker[0], &diag),
                     STATUS_LOST);
    close(ends[0]);
    channel_reader_free(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_as_they_were_sent_however_they_are_cut),
        cmocka_unit_test(a_part_of_a_message_is_none),
        cmocka_unit_test(what_no_worker_sends_is_refused),
        cmocka_unit_test(a_text_that_is_too_long_is_cut_between_characters),
        cmocka_unit_test(a_message_goes_through_a_socket_and_its_loss_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
