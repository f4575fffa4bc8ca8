/*
 * Arena -- memory of one batch: allocated piece by piece, given back at once.
 * arena_reset keeps one block, so a steady stream of batches allocates nothing.
 * Memory is valid until the next reset; a build with AddressSanitizer reports
 * every use after it.
 */
#ifndef HOST_BASE_ARENA_H
#define HOST_BASE_ARENA_H

#include "base/text.h"

struct arena_block; /* base/arena.c */

struct arena {
    struct arena_block *block; /* current block; older ones are chained */
    size_t used;               /* bytes handed out since the last reset */
};

#define ARENA_EMPTY ((struct arena){NULL, 0})

void *arena_alloc(struct arena *arena, size_t size); /* aligned, not zeroed */
void *arena_alloc_zero(struct arena *arena, size_t size);
/** Room for one more item of `size` bytes behind the `count` there are in
 * `items`, which this function made (NULL: none). They may move; the place for
 * a new one is zero. */
void *arena_grow(struct arena *arena, void *items, size_t count, size_t size);
/** Both add a NUL, and keep TEXT_NONE what it is (NULL). */
struct text arena_copy(struct arena *arena, struct text text);
const char *arena_string(struct arena *arena, struct text text);
void arena_reset(struct arena *arena);
void arena_free(struct arena *arena);

#endif
