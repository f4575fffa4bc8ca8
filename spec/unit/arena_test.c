#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    struct arena arena = ARENA_EMPTY;
    unsigned char *pieces[500];

    (void)state;
    for (size_t i = 0; i < 500; i++) {
        pieces[i] = arena_alloc(&arena, i * 3);
        assert_int_equal((uintptr_t)pieces[i] % sizeof(void *), 0);
        memset(pieces[i], (int)(i & 0xFF), i * 3);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t j = 0; j < i * 3; j++)
            assert_int_equal(pieces[i][j], i & 0xFF);
    }
    arena_free(&arena);
}

static void a_piece_larger_than_a_block_is_whole(void **state)
{
    struct arena arena = ARENA_EMPTY;
    char *piece = arena_alloc_zero(&arena, 40 << 20);

    (void)state;
    assert_int_equal(piece[(40 << 20) - 1], 0);
    assert_true(arena.used >= 40 << 20);
    arena_reset(&arena);
    assert_int_equal(arena.used, 0);
    arena_free(&arena);
}

static void zeroed_memory_is_zero_after_a_reset(void **state)
{
    struct arena arena = ARENA_EMPTY;
    const char *piece;

    (void)state;
    memset(arena_alloc(&arena, 100), 0xFF, 100);
    arena_reset(&arena);
    piece = arena_alloc_zero(&arena, 100);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(piece[i], 0);
    arena_free(&arena);
}

static void batches_of_one_size_reuse_one_block(void **state)
{
    struct arena arena = ARENA_EMPTY;
    const struct arena_block *block = NULL;

    (void)state;
    for (int batch = 0; batch < 10; batch++) {
        if (batch > 1)
            assert_ptr_equal(arena.block, block);
        block = arena.block;
        for (int i = 0; i < 5000; i++)
            arena_alloc(&arena, 1000);
        if (batch > 1)
            assert_ptr_equal(arena.block, block);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

static void a_copy_ends_with_nul_and_nothing_stays_nothing(void **state)
{
    struct arena arena = ARENA_EMPTY;
    struct text copy = arena_copy(&arena, (struct text){"tidewater", 4});

    (void)state;
    assert_int_equal(copy.len, 4);
    assert_string_equal(copy.data, "tide");
    assert_string_equal(arena_string(&arena, TEXT_LITERAL("")), "");
    assert_null(arena_copy(&arena, TEXT_NONE).data);
    assert_null(arena_string(&arena, TEXT_NONE));
    arena_free(&arena);
}

static void what_grows_keeps_its_items_and_gives_empty_places(void **state)
{
    struct arena arena = ARENA_EMPTY;
    int64_t *items = NULL;

    (void)state;
    /* what a block held before the reset must not show in a new place */
    memset(arena_alloc(&arena, 4000), 0xFF, 4000);
    arena_reset(&arena);
    for (size_t i = 0; i < 100; i++) {
        items = arena_grow(&arena, items, i, sizeof(*items));
        assert_int_equal(items[i], 0);
        items[i] = (int64_t)i + 1;
    }
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(items[i], i + 1);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(a_piece_larger_than_a_block_is_whole),
        cmocka_unit_test(zeroed_memory_is_zero_after_a_reset),
        cmocka_unit_test(batches_of_one_size_reuse_one_block),
        cmocka_unit_test(a_copy_ends_with_nul_and_nothing_stays_nothing),
        cmocka_unit_test(what_grows_keeps_its_items_and_gives_empty_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
