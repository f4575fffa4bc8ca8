/*
 * Map -- text keys to int64 values, open addressing. Keys are borrowed and
 * must outlive the map's use (a batch arena, a declaration).
 */
#ifndef HOST_BASE_MAP_H
#define HOST_BASE_MAP_H

#include "base/text.h"

#include <stdint.h>

struct map_entry;

struct map {
    struct map_entry *entries;
    size_t capacity; /* a power of two, 0 when nothing was put */
    size_t count;
};

#define MAP_EMPTY  ((struct map){NULL, 0, 0})
#define MAP_ABSENT INT64_C(-1)

/** The value stored under `key`, MAP_ABSENT when there is none. */
int64_t map_get(const struct map *map, struct text key);

/**
 * The value under `key`; when there is none stores `value` (>= 0) first and
 * sets *added. So one probe finds or inserts.
 */
int64_t map_put(struct map *map, struct text key, int64_t value, bool *added);

/** Another value (>= 0) for a key that is there. */
void map_set(struct map *map, struct text key, int64_t value);

void map_clear(struct map *map); /* keeps the memory */
void map_free(struct map *map);

#endif
