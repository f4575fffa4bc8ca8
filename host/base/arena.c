#include "base/arena.h"

#include "base/memory.h"

#include <stdalign.h>
#include <stdint.h>

#define BLOCK_MIN ((size_t)16384)
#define BLOCK_MAX ((size_t)1 << 20) /* blocks double up to here */
#define ALIGNMENT (alignof(max_align_t))

struct arena_block {
    struct arena_block *older;
    size_t size; /* bytes of data */
    size_t used;
    alignas(max_align_t) char data[];
};

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
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->block;
    size_t need = size < SIZE_MAX - ALIGNMENT
                      ? (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
                      : SIZE_MAX;
    void *memory;

    if (block == NULL || block->size - block->used < need)
        block = add_block(arena, need);
    memory = block->data + block->used;
    block->used += need;
    arena->used += need;
    return memory;
}

void *arena_alloc_zero(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
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

/* The largest block stays: a few batches of one size end up in one block. */
void arena_reset(struct arena *arena)
{
    struct arena_block *keep = arena->block;
    struct arena_block *block = arena->block;

    for (; block != NULL; block = block->older) {
        if (block->size > keep->size)
            keep = block;
    }
    block = arena->block;
    while (block != NULL) {
        struct arena_block *older = block->older;

        if (block != keep)
            mem_free(block);
        block = older;
    }
    if (keep != NULL) {
        keep->older = NULL;
        keep->used = 0;
    }
    arena->block = keep;
    arena->used = 0;
}

void arena_free(struct arena *arena)
{
    while (arena->block != NULL) {
        struct arena_block *older = arena->block->older;

        mem_free(arena->block);
        arena->block = older;
    }
    arena->used = 0;
}
