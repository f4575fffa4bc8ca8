#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void an_untouched_buffer_is_an_empty_text(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;

    (void)state;
    assert_string_equal(buffer_text(&buffer).data, "");
    assert_int_equal(buffer_text(&buffer).len, 0);
    buffer_clear(&buffer);
    buffer_free(&buffer);
}

static void pieces_of_any_size_are_joined_and_ended_by_nul(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;
    size_t expected = 0;

    (void)state;
    for (size_t len = 0; len < 300; len++) {
        char piece[300];

        memset(piece, (int)('a' + len % 26), sizeof(piece));
        buffer_append(&buffer, piece, len);
        buffer_append_char(&buffer, '\0');
        expected += len + 1;
        assert_int_equal(buffer.len, expected);
        assert_int_equal(buffer.data[buffer.len], '\0');
    }
    expected = 0;
    for (size_t len = 0; len < 300; len++) {
        for (size_t i = 0; i < len; i++)
            assert_int_equal(buffer.data[expected + i], (char)('a' + len % 26));
        expected += len + 1;
    }
    buffer_free(&buffer);
}

static void formatted_text_longer_than_the_room_is_whole(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t len = 0; len < sizeof(text); len += 7) {
        buffer_clear(&buffer);
        buffer_append_string(&buffer, "start ");
        buffer_printf(&buffer, "<%.*s>", (int)len, text);
        assert_int_equal(buffer.len, len + 8);
        assert_int_equal(buffer.data[buffer.len - 1], '>');
        assert_int_equal(buffer.data[buffer.len], '\0');
    }
    buffer_free(&buffer);
}

static void clearing_keeps_the_memory(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;
    const char *data;

    (void)state;
    buffer_reserve(&buffer, 5000);
    data = buffer.data;
    buffer_append_text(&buffer, TEXT_LITERAL("tide"));
    buffer_append_text(&buffer, TEXT_NONE);
    buffer_clear(&buffer);
    assert_string_equal(buffer.data, "");
    assert_ptr_equal(buffer.data, data);
    buffer_free(&buffer);
}

/* A file of `len` bytes; the caller removes and frees the path. */
static char *make_file(size_t len)
{
    char *path = strdup("buffer_test.XXXXXX");
    int fd = mkstemp(path);
    FILE *file;

    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    for (size_t i = 0; i < len; i++)
        fputc((int)(i % 251), file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void a_file_is_read_whole_behind_what_is_there(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;
    char *path = make_file(200000);
    struct diag diag;

    (void)state;
    buffer_append_string(&buffer, "head");
    assert_int_equal(buffer_read_file(&buffer, path, 200000, &diag), STATUS_OK);
    assert_int_equal(buffer.len, 200004);
    for (size_t i = 0; i < 200000; i++) {
        if ((unsigned char)buffer.data[4 + i] != i % 251)
            fail_msg("byte %zu", i);
    }
    assert_int_equal(buffer.data[buffer.len], '\0');
    unlink(path);
    free(path);
    buffer_free(&buffer);
}

static void a_file_over_the_limit_is_refused(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;
    char *path = make_file(100001);
    struct diag diag;

    (void)state;
    buffer_append_string(&buffer, "head");
    assert_int_equal(buffer_read_file(&buffer, path, 100000, &diag),
                     STATUS_INVALID);
    assert_non_null(strstr(diag.message, path));
    assert_non_null(strstr(diag.message, "100000 bytes"));
    assert_string_equal(buffer.data, "head");
    assert_int_equal(buffer.len, 4);
    unlink(path);
    free(path);
    buffer_free(&buffer);
}

static void an_unreadable_path_is_named_with_the_reason(void **state)
{
    struct buffer buffer = BUFFER_EMPTY;
    struct diag diag;

    (void)state;
    assert_int_equal(buffer_read_file(&buffer, "no/such/file", 10, &diag),
                     STATUS_INVALID);
    assert_non_null(strstr(diag.message, "no/such/file: No such file"));
    assert_int_equal(buffer_read_file(&buffer, ".", 10, &diag), STATUS_INVALID);
    assert_non_null(strstr(diag.message, "directory"));
    buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untouched_buffer_is_an_empty_text),
        cmocka_unit_test(pieces_of_any_size_are_joined_and_ended_by_nul),
        cmocka_unit_test(formatted_text_longer_than_the_room_is_whole),
        cmocka_unit_test(clearing_keeps_the_memory),
        cmocka_unit_test(a_file_is_read_whole_behind_what_is_there),
        cmocka_unit_test(a_file_over_the_limit_is_refused),
        cmocka_unit_test(an_unreadable_path_is_named_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
