#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define KEYS 5000

static void what_was_put_is_found_and_nothing_else(void **state)
{
    static char keys[KEYS][16];
    struct map map = MAP_EMPTY;
    bool added;

    (void)state;
    assert_int_equal(map_get(&map, TEXT_LITERAL("k0")), MAP_ABSENT);
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%d", i * 7);
        assert_int_equal(map_put(&map, text_of(keys[i]), i, &added), i);
        assert_true(added);
    }
    assert_int_equal(map.count, KEYS);
    for (int i = 0; i < KEYS; i++) {
        char other[24];

        snprintf(other, sizeof(other), "k%d", i * 7);
        assert_int_equal(map_get(&map, text_of(other)), i);
        snprintf(other, sizeof(other), "k%d", i * 7 + 1);
        assert_int_equal(map_get(&map, text_of(other)), MAP_ABSENT);
    }
    map_free(&map);
}

static void a_second_put_keeps_the_first_value(void **state)
{
    struct map map = MAP_EMPTY;
    bool added;

    (void)state;
    assert_int_equal(map_put(&map, TEXT_LITERAL("a"), 3, &added), 3);
    assert_int_equal(map_put(&map, TEXT_LITERAL("a"), 4, &added), 3);
    assert_false(added);
    assert_int_equal(map.count, 1);
    map_free(&map);
}

/* Keys of every length, that differ in their last byte or in length only. */
static void keys_are_told_apart_by_every_byte(void **state)
{
    static char bytes[3][64];
    struct map map = MAP_EMPTY;
    bool added;

    (void)state;
    bytes[1][0] = 'x'; /* keys of NULs, then one with another first byte */
    for (size_t len = 0; len < 64; len++) {
        assert_int_equal(
            map_put(&map, (struct text){bytes[0], len}, (int64_t)len, &added),
            len);
        assert_true(added);
        map_put(&map, (struct text){bytes[1], len}, 100 + (int64_t)len, &added);
        assert_int_equal(added, len > 0);
    }
    memset(bytes[2], 'y', sizeof(bytes[2]));
    for (size_t len = 1; len < 64; len++) {
        static char last[64][64];

        last[len][len - 1] = 'z';
        map_put(&map, (struct text){last[len], len}, 200 + (int64_t)len,
                &added);
        assert_true(added);
        map_put(&map, (struct text){bytes[2], len}, 300 + (int64_t)len, &added);
        assert_true(added);
    }
    assert_int_equal(map_get(&map, (struct text){bytes[0], 63}), 63);
    assert_int_equal(map_get(&map, (struct text){bytes[1], 63}), 163);
    assert_int_equal(map_get(&map, TEXT_NONE), 0);
    map_free(&map);
}

static void a_cleared_map_is_empty_and_keeps_its_memory(void **state)
{
    struct map map = MAP_EMPTY;
    size_t capacity;
    bool added;

    (void)state;
    map_clear(&map);
    map_put(&map, TEXT_LITERAL("a"), 3, &added);
    capacity = map.capacity;
    map_clear(&map);
    assert_int_equal(map.count, 0);
    assert_int_equal(map_get(&map, TEXT_LITERAL("a")), MAP_ABSENT);
    map_put(&map, TEXT_LITERAL("a"), 5, &added);
    assert_true(added);
    assert_int_equal(map_get(&map, TEXT_LITERAL("a")), 5);
    assert_int_equal(map.capacity, capacity);
    map_free(&map);
    map_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_and_nothing_else),
        cmocka_unit_test(a_second_put_keeps_the_first_value),
        cmocka_unit_test(keys_are_told_apart_by_every_byte),
        cmocka_unit_test(a_cleared_map_is_empty_and_keeps_its_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
