#include "base/memory.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void memory_is_zeroed(void **state)
{
    char *memory = mem_alloc(1000);

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(memory[i], 0);
    mem_free(memory);
}

static void growing_keeps_the_content(void **state)
{
    char *memory = mem_copy_text("tide", 4);

    (void)state;
    memory = mem_grow(memory, 1000, 7);
    assert_string_equal(memory, "tide");
    mem_free(memory);
}

static void a_copy_of_nothing_is_an_empty_string(void **state)
{
    char *memory = mem_copy_text(NULL, 0);

    (void)state;
    assert_string_equal(memory, "");
    mem_free(memory);
    mem_free(NULL);
}

/* Asks in a child for more than there can be; returns what it wrote. */
static void exhaust_in_child(char *line, size_t size, int *wait_status)
{
    int ends[2];
    pid_t child;
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        mem_grow(NULL, SIZE_MAX / 2 + 2, 2); /* wraps round to 2 */
        _exit(0);
    }
    close(ends[1]);
    got = read(ends[0], line, size - 1);
    line[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, wait_status, 0), child);
}

static void exhaustion_ends_the_process_with_one_line(void **state)
{
    char line[256];
    int wait_status;

    (void)state;
    exhaust_in_child(line, sizeof(line), &wait_status);
    assert_true(WIFSIGNALED(wait_status));
    assert_int_equal(WTERMSIG(wait_status), SIGABRT);
    assert_non_null(strstr(line, "out of memory"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(growing_keeps_the_content),
        cmocka_unit_test(a_copy_of_nothing_is_an_empty_string),
        cmocka_unit_test(exhaustion_ends_the_process_with_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
