#include "base/arena.h"

#include "base/memory.h"

#include <stdalign.h>
#include <stdint.h>

#define BLOCK_MIN ((size_t)16384)
#define BLOCK_MAX ((size_t)1 << 20) /* blocks double up to here */
#define KEEP_MAX  ((size_t)16 << 20)
#define ALIGNMENT (alignof(max_align_t))

struct arena_block {
    struct arena_block *older;
    size_t size; /* bytes of data */
    size_t used;
    alignas(max_align_t) char data[];
};

/* With AddressSanitizer, memory that is not handed out cannot be touched. */
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_WATCHED 1
#endif
#endif

#ifdef ARENA_WATCHED
#include <sanitizer/asan_interface.h>

static void hide(const char *memory, size_t size)
{
    __asan_poison_memory_region(memory, size);
}

static void show(const char *memory, size_t size)
{
    __asan_unpoison_memory_region(memory, size);
}
#else
static void hide(const char *memory, size_t size)
{
    (void)memory;
    (void)size;
}

static void show(const char *memory, size_t size)
{
    (void)memory;
    (void)size;
}
#endif

static struct arena_block *add_block(struct arena *arena, size_t need)
{
    size_t size = BLOCK_MIN;
    struct arena_block *block;

    if (arena->block != NULL) {
        size = arena->block->size;
        if (size < BLOCK_MAX)
            size *= 2;
        else
            size = BLOCK_MAX;
    }
    if (size < need)
        size = need;
    if (size > SIZE_MAX - sizeof(*block))
        size = SIZE_MAX - sizeof(*block); /* mem_grow ends the process */
    block = mem_grow(NULL, sizeof(*block) + size, 1);
    *block = (struct arena_block){.older = arena->block, .size = size};
    arena->block = block;
    hide(block->data, size);
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->block;
    size_t need = size < SIZE_MAX - ALIGNMENT
                      ? (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
                      : SIZE_MAX;
    char *memory;

    if (block == NULL || block->size - block->used < need)
        block = add_block(arena, need);
    memory = block->data + block->used;
    block->used += need;
    arena->used += need;
    show(memory, size);
    return memory;
}

void *arena_alloc_zero(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

void *arena_grow(struct arena *arena, void *items, size_t count, size_t size)
{
    size_t bytes;
    void *bigger;

    /* full whenever the count is a power of two: then its room doubles */
    if (items != NULL && (count & (count - 1)) != 0)
        return items;
    if (__builtin_mul_overflow(count == 0 ? 1 : count, size, &bytes) ||
        __builtin_mul_overflow(bytes, count == 0 ? 1 : 2, &bytes))
        bytes = SIZE_MAX;
    bigger = arena_alloc_zero(arena, bytes);
    if (items != NULL)
        memcpy(bigger, items, count * size);
    return bigger;
}

struct text arena_copy(struct arena *arena, struct text text)
{
    char *copy;

    if (text.data == NULL)
        return TEXT_NONE;
    copy = arena_alloc(arena, text.len < SIZE_MAX ? text.len + 1 : SIZE_MAX);
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return (struct text){copy, text.len};
}

const char *arena_string(struct arena *arena, struct text text)
{
    return arena_copy(arena, text).data;
}

/*
 * Several blocks become one of their common size, so the next batch of that
 * size fits. A batch beyond KEEP_MAX is the exception and keeps no memory.
 */
void arena_reset(struct arena *arena)
{
    size_t size = 0;

    for (struct arena_block *b = arena->block; b != NULL; b = b->older)
        size += b->size;
    if (size > KEEP_MAX) {
        arena_free(arena);
    } else if (arena->block != NULL && arena->block->older != NULL) {
        arena_free(arena);
        add_block(arena, size);
    } else if (arena->block != NULL) {
        arena->block->used = 0;
        hide(arena->block->data, arena->block->size);
    }
    arena->used = 0;
}

void arena_free(struct arena *arena)
{
    while (arena->block != NULL) {
        struct arena_block *older = arena->block->older;

        show(arena->block->data, arena->block->size);
        mem_free(arena->block);
        arena->block = older;
    }
    arena->used = 0;
}
