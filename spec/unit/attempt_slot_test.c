/*
 * Attempt slot: what a worker says of its call comes across whole or not at
 * all, and what no worker writes is refused.
 */
#include "consumer/attempt_slot.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct attempt_consumer consumer = {
    .type = "projection",
    .name = "orders",
    .source = "event-store",
    .id = "01890a5d-ac96-774b-bcce-b302099a8057",
    .epoch = 3,
    .after = 70,
    .retry = {.attempts = 5,
              .delay_us = 1000,
              .factor = 2,
              .max_delay_us = 60000000,
              .jitter = 0.1},
};

static struct message message_at(int64_t position)
{
    struct message m = {.position = position, .type = TEXT_LITERAL("x.Y")};

    memset(m.id.bytes, (int)(position % 256), sizeof(m.id.bytes));
    return m;
}

static void start(struct attempt_slot *slot, int64_t position, const char *key)
{
    const struct message m = message_at(position);

    attempt_slot_start(slot, &(struct attempt_call){
                                 .kind = ATTEMPT_HANDLER,
                                 .message = &m,
                                 .key = key != NULL ? text_of(key) : TEXT_NONE,
                                 .partition = (int)(position % 7),
                                 .attempt = 2,
                                 .where = "handlers/x.lua:12",
                             });
}

static void gives_back_what_was_said(void **state)
{
    struct attempt_slot slot = {.kind = 0};
    const struct message m = message_at(77);
    struct attempt a;

    (void)state;
    attempt_slot_consumer(&slot, &consumer);
    start(&slot, 77, "A-1");
    assert_true(attempt_slot_read(&slot, &a));
    assert_int_equal(a.started_at, attempt_slot_started_at(&slot));
    assert_true(a.started_at > 0);
    assert_int_equal(a.kind, ATTEMPT_HANDLER);
    assert_string_equal(a.consumer_id, consumer.id);
    assert_string_equal(a.type, "projection");
    assert_string_equal(a.name, "orders");
    assert_string_equal(a.source, "event-store");
    assert_int_equal(a.epoch, 3);
    assert_int_equal(a.after, 70);
    assert_int_equal(a.retry.attempts, 5);
    assert_int_equal(a.retry.max_delay_us, 60000000);
    assert_int_equal(a.position, 77);
    assert_memory_equal(a.message_id.bytes, m.id.bytes, sizeof(m.id.bytes));
    assert_int_equal(a.partition, 0);
    assert_int_equal(a.attempt, 2);
    assert_true(a.has_key);
    assert_string_equal(a.key, "A-1");
    assert_string_equal(a.where, "handlers/x.lua:12");
}

static void tells_no_call_where_none_runs(void **state)
{
    struct attempt_slot slot = {.kind = 0};
    struct attempt a;

    (void)state;
    assert_false(attempt_slot_read(&slot, &a));
    attempt_slot_consumer(&slot, &consumer);
    assert_false(attempt_slot_read(&slot, &a));
    start(&slot, 77, NULL);
    assert_true(attempt_slot_read(&slot, &a));
    assert_false(a.has_key);
    attempt_slot_end(&slot);
    assert_false(attempt_slot_read(&slot, &a));
    assert_int_equal(attempt_slot_started_at(&slot), 0);
}

static void ticks(void **state)
{
    struct attempt_slot slot = {.kind = 0};
    int64_t before = clock_monotonic();

    (void)state;
    assert_int_equal(attempt_slot_ticked_at(&slot), 0);
    attempt_slot_tick(&slot);
    assert_true(attempt_slot_ticked_at(&slot) >= before);
}

static void takes_no_slot(void **state)
{
    (void)state;
    attempt_slot_tick(NULL);
    attempt_slot_consumer(NULL, &consumer);
    start(NULL, 1, "A");
    attempt_slot_end(NULL);
}

static void keeps_the_longest_names(void **state)
{
    struct attempt_slot slot = {.kind = 0};
    char longest[ATTEMPT_TEXT_MAX + 1];
    struct attempt_consumer wide = consumer;
    struct attempt a;

    (void)state;
    memset(longest, 'n', ATTEMPT_TEXT_MAX);
    longest[ATTEMPT_TEXT_MAX] = '\0';
    wide.name = wide.source = longest;
    attempt_slot_consumer(&slot, &wide);
    start(&slot, 1, longest);
    assert_true(attempt_slot_read(&slot, &a));
    assert_string_equal(a.name, longest);
    assert_string_equal(a.source, longest);
    assert_string_equal(a.key, longest);
}

/* Whatever a worker gone wild has left there. */
static void refuses_what_no_worker_writes(void **state)
{
    struct attempt_slot good = {.kind = 0}, slot;
    struct attempt a;

    (void)state;
    attempt_slot_consumer(&good, &consumer);
    start(&good, 77, "A-1");
#define REFUSES(change)                                                        \
    do {                                                                       \
        memcpy(&slot, &good, sizeof(slot));                                    \
        change;                                                                \
        assert_false(attempt_slot_read(&slot, &a));                            \
    } while (0)
    REFUSES(slot.kind = ATTEMPT_DEADLINE + 1);
    REFUSES(slot.kind = -1);
    REFUSES(slot.partition = -1);
    REFUSES(slot.attempt = 0);
    REFUSES(slot.position = -1);
    REFUSES(slot.epoch = -1);
    REFUSES(slot.has_key = 2);
    REFUSES(slot.key_len = ATTEMPT_TEXT_MAX + 1);
    REFUSES(slot.name_len = UINT16_MAX);
    REFUSES(slot.where_len = ATTEMPT_WHERE_MAX + 1);
    REFUSES(slot.name[2] = '\0');
    REFUSES(slot.consumer_id[0] = '\0');
    REFUSES(slot.attempts = 0);
    REFUSES(slot.delay_us = -1);
    REFUSES(slot.max_delay_us = INT64_MAX);
    REFUSES(slot.factor = (double)NAN);
    REFUSES(slot.jitter = 2);
    REFUSES(slot.version++);
#undef REFUSES
    memset(&slot, 0xff, sizeof(slot));
    assert_false(attempt_slot_read(&slot, &a));
}

struct race {
    struct attempt_slot slot;
    _Atomic bool over;
};

static void *write_on(void *arg)
{
    struct race *race = arg;
    char key[32];

    for (int64_t i = 1; !race->over; i++) {
        snprintf(key, sizeof(key), "key-%lld", (long long)i);
        start(&race->slot, i, key);
    }
    return NULL;
}

static void never_mixes_two_calls(void **state)
{
    struct race race = {.over = false};
    int64_t seen = 0, last = 0;
    pthread_t thread;

    (void)state;
    attempt_slot_consumer(&race.slot, &consumer);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &race), 0);
    for (int64_t end = clock_monotonic() + 20 * CLOCK_SECOND;
         seen < 20000 && clock_monotonic() < end;) {
        const struct attempt_slot *slot = &race.slot;
        struct attempt a;
        struct message m;
        char key[32];

        if (!attempt_slot_read(slot, &a))
            continue;
        m = message_at(a.position);
        snprintf(key, sizeof(key), "key-%lld", (long long)a.position);
        assert_string_equal(a.key, key);
        assert_int_equal(a.partition, a.position % 7);
        assert_memory_equal(a.message_id.bytes, m.id.bytes, 16);
        assert_true(a.position >= last);
        last = a.position;
        seen++;
    }
    race.over = true;
    pthread_join(thread, NULL);
    assert_true(seen > 1000);
    assert_true(last > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_was_said),
        cmocka_unit_test(tells_no_call_where_none_runs),
        cmocka_unit_test(ticks),
        cmocka_unit_test(takes_no_slot),
        cmocka_unit_test(keeps_the_longest_names),
        cmocka_unit_test(refuses_what_no_worker_writes),
        cmocka_unit_test(never_mixes_two_calls),
    };

    return cmocka_run_group_tests_name("attempt_slot", tests, NULL, NULL);
}
