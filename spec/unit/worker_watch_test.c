/*
 * The supervisor's judgement of a worker, from its slot and its process: who
 * ticks lives, whose handler burns its time hangs, and neither a process that
 * was stopped nor one that waits for the database is taken for one that does.
 */
#include "run/worker_watch.h"

#include "base/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct worker_watch_limits limits = {
    .handler = CLOCK_SECOND,
    .silent = 2 * CLOCK_SECOND,
    .hung = 60 * CLOCK_SECOND,
};

#define LOOK_US (CLOCK_SECOND / 20)
#define START   (1000 * CLOCK_SECOND)

struct watched {
    struct worker_watch watch;
    union {
        struct attempt_slot slot;
        char page[ATTEMPT_SLOT_SIZE];
    } memory;
    int64_t now;
    pid_t pid;
};

/* Looks for so long; the first judgement that is not LIFE_WELL. */
static enum worker_life look_for(struct watched *w, int64_t us)
{
    int64_t until = w->now + us;
    enum worker_life life = LIFE_WELL;

    while (life == LIFE_WELL && w->now < until) {
        w->now += LOOK_US;
        life = worker_watch_look(&w->watch, w->pid, &w->memory.slot, &limits,
                                 w->now);
    }
    return life;
}

static void begin(struct watched *w, pid_t pid)
{
    memset(w, 0, sizeof(*w));
    w->now = START;
    w->pid = pid;
}

static pid_t child(bool burns)
{
    pid_t pid = fork();

    if (pid == 0) {
        alarm(60);
        for (volatile int i = 0;; i = i + 1)
            if (!burns)
                pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void wait_until_it_sleeps(pid_t pid)
{
    char path[64], text[128];
    const char *state = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    while (state == NULL || state[2] != 'S') {
        FILE *file = fopen(path, "r");

        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        (void)fclose(file);
        state = strrchr(text, ')');
    }
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void one_that_ticks_lives(void **state)
{
    struct watched w;

    (void)state;
    begin(&w, getpid());
    for (int i = 0; i < 1000; i++) {
        w.memory.slot.ticked_at = w.now;
        assert_int_equal(look_for(&w, CLOCK_SECOND), LIFE_WELL);
    }
}

static void one_that_does_not_is_silent_and_then_hung(void **state)
{
    struct watched w;
    int64_t since;

    (void)state;
    begin(&w, getpid());
    w.memory.slot.ticked_at = w.now;
    assert_int_equal(look_for(&w, CLOCK_SECOND), LIFE_WELL);
    since = w.now;
    assert_int_equal(look_for(&w, 3 * CLOCK_SECOND), LIFE_SILENT);
    assert_in_range(w.now - since, CLOCK_SECOND / 2, 3 * CLOCK_SECOND);
    while (worker_watch_look(&w.watch, w.pid, &w.memory.slot, &limits,
                             w.now += LOOK_US) == LIFE_SILENT)
        assert_true(w.now - since < 100 * CLOCK_SECOND);
    assert_true(w.now - since > 58 * CLOCK_SECOND);
    assert_int_equal(worker_watch_look(&w.watch, w.pid, &w.memory.slot, &limits,
                                       w.now += LOOK_US),
                     LIFE_HUNG);
}

/* The child really burns; the clock that judges it is ours. */
static void a_handler_that_burns_its_time_hangs(void **state)
{
    struct watched w;
    int64_t since;
    pid_t pid = child(true);

    (void)state;
    begin(&w, pid);
    assert_int_equal(look_for(&w, LOOK_US), LIFE_WELL);
    w.memory.slot.started_at = since = w.now;
    while (look_for(&w, LOOK_US) == LIFE_WELL) {
        assert_true(w.now - since < 2 * CLOCK_SECOND);
        usleep(20000);
    }
    end(pid);
    assert_in_range(w.now - since, CLOCK_SECOND,
                    CLOCK_SECOND + 2 * CLOCK_SECOND / 10);
}

static void a_handler_that_waits_has_the_time_of_a_lock(void **state)
{
    struct watched w;
    pid_t pid = child(false);

    (void)state;
    begin(&w, pid);
    wait_until_it_sleeps(pid);
    assert_int_equal(look_for(&w, LOOK_US), LIFE_WELL);
    w.memory.slot.started_at = w.now;
    w.memory.slot.waits = 1;
    assert_int_equal(look_for(&w, 6 * CLOCK_SECOND), LIFE_WELL);
    assert_int_equal(look_for(&w, 6 * CLOCK_SECOND), LIFE_HANDLER);
    end(pid);
}

static void a_handler_that_waits_for_anything_else_hangs(void **state)
{
    struct watched w;
    int64_t since;
    pid_t pid = child(false);

    (void)state;
    begin(&w, pid);
    wait_until_it_sleeps(pid);
    assert_int_equal(look_for(&w, LOOK_US), LIFE_WELL);
    w.memory.slot.started_at = since = w.now;
    assert_int_equal(look_for(&w, 2 * CLOCK_SECOND), LIFE_HANDLER);
    assert_in_range(w.now - since, CLOCK_SECOND,
                    CLOCK_SECOND + 2 * CLOCK_SECOND / 10);
    end(pid);
}

static void
a_stopped_process_is_silent_and_its_handler_does_not_hang(void **state)
{
    struct watched w;
    pid_t pid = child(true);
    int status;

    (void)state;
    begin(&w, pid);
    assert_int_equal(look_for(&w, LOOK_US), LIFE_WELL);
    w.memory.slot.started_at = w.now;
    assert_int_equal(look_for(&w, CLOCK_SECOND / 2), LIFE_WELL);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    for (int i = 0; i < 100; i++)
        assert_int_equal(worker_watch_look(&w.watch, pid, &w.memory.slot,
                                           &limits, w.now += LOOK_US),
                         LIFE_SILENT);
    kill(pid, SIGCONT);
    /* it has half of its time left */
    assert_int_equal(look_for(&w, CLOCK_SECOND / 4), LIFE_WELL);
    end(pid);
}

/* It may hold the one lock that there is, as on SQLite. */
static void a_process_that_stays_stopped_in_a_handler_is_hung(void **state)
{
    struct watched w;
    int64_t since;
    pid_t pid = child(true);
    int status;

    (void)state;
    begin(&w, pid);
    assert_int_equal(look_for(&w, LOOK_US), LIFE_WELL);
    w.memory.slot.started_at = w.now;
    assert_int_equal(look_for(&w, CLOCK_SECOND / 2), LIFE_WELL);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    /* a supervisor that was stopped, too, has not seen how long */
    w.now += 1000 * CLOCK_SECOND;
    since = w.now;
    while (worker_watch_look(&w.watch, pid, &w.memory.slot, &limits,
                             w.now += LOOK_US) == LIFE_SILENT)
        assert_true(w.now - since < 70 * CLOCK_SECOND);
    assert_true(w.now - since > 58 * CLOCK_SECOND);
    assert_int_equal(worker_watch_look(&w.watch, pid, &w.memory.slot, &limits,
                                       w.now += LOOK_US),
                     LIFE_HUNG);
    end(pid);
}

static void one_that_nobody_looked_at_is_not_to_blame(void **state)
{
    struct watched w;

    (void)state;
    begin(&w, getpid());
    w.memory.slot.ticked_at = w.now;
    assert_int_equal(look_for(&w, CLOCK_SECOND), LIFE_WELL);
    w.now += 1000 * CLOCK_SECOND;
    assert_int_equal(look_for(&w, LOOK_US), LIFE_WELL);
}

static void no_value_of_a_slot_makes_it_live_for_ever(void **state)
{
    static const int64_t values[] = {INT64_MIN, -1, 1, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct watched w;
        pid_t pid;

        begin(&w, getpid());
        w.memory.slot.ticked_at = values[i];
        assert_int_equal(look_for(&w, 100 * CLOCK_SECOND), LIFE_SILENT);
        pid = child(false);
        begin(&w, pid);
        w.memory.slot.started_at = values[i];
        assert_int_equal(look_for(&w, 100 * CLOCK_SECOND), LIFE_HANDLER);
        end(pid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_ticks_lives),
        cmocka_unit_test(one_that_does_not_is_silent_and_then_hung),
        cmocka_unit_test(a_handler_that_burns_its_time_hangs),
        cmocka_unit_test(a_handler_that_waits_has_the_time_of_a_lock),
        cmocka_unit_test(a_handler_that_waits_for_anything_else_hangs),
        cmocka_unit_test(
            a_stopped_process_is_silent_and_its_handler_does_not_hang),
        cmocka_unit_test(a_process_that_stays_stopped_in_a_handler_is_hung),
        cmocka_unit_test(one_that_nobody_looked_at_is_not_to_blame),
        cmocka_unit_test(no_value_of_a_slot_makes_it_live_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
