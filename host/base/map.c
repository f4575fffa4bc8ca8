#include "base/map.h"

#include "base/memory.h"

#include <assert.h>

#define CAPACITY_MIN ((size_t)64)

struct map_entry {
    struct text key;
    uint64_t hash;
    int64_t value; /* MAP_ABSENT: the slot is free */
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

/* Eight bytes a step; the last step overlaps or is padded by the length. */
static uint64_t hash_key(struct text key)
{
    uint64_t hash = UINT64_C(0x243F6A8885A308D3) ^ key.len;
    const char *at = key.data;
    size_t left = key.len;
    uint64_t word = 0;

    for (; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = mix(hash, word);
    }
    if (left > 0) {
        word = 0;
        memcpy(&word, at, left);
        hash = mix(hash, word);
    }
    hash = mix(hash, hash >> 32);
    return hash;
}

/* The slot of `key`, or the free one where it belongs. */
static struct map_entry *find_slot(const struct map *map, struct text key,
                                   uint64_t hash)
{
    size_t mask = map->capacity - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct map_entry *entry = &map->entries[i];

        if (entry->value == MAP_ABSENT ||
            (entry->hash == hash && text_equal(entry->key, key)))
            return entry;
    }
}

static void set_free(struct map_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        entries[i].value = MAP_ABSENT;
}

static void grow(struct map *map)
{
    struct map old = *map;

    map->capacity = old.capacity > 0 ? old.capacity * 2 : CAPACITY_MIN;
    map->entries = mem_grow(NULL, map->capacity, sizeof(*map->entries));
    set_free(map->entries, map->capacity);
    for (size_t i = 0; i < old.capacity; i++) {
        const struct map_entry *entry = &old.entries[i];

        if (entry->value != MAP_ABSENT)
            *find_slot(map, entry->key, entry->hash) = *entry;
    }
    mem_free(old.entries);
}

int64_t map_get(const struct map *map, struct text key)
{
    if (map->count == 0)
        return MAP_ABSENT;
    return find_slot(map, key, hash_key(key))->value;
}

void map_set(struct map *map, struct text key, int64_t value)
{
    struct map_entry *entry;

    assert(map->count > 0 && value >= 0);
    entry = find_slot(map, key, hash_key(key));
    assert(entry->value != MAP_ABSENT);
    entry->value = value;
}

int64_t map_put(struct map *map, struct text key, int64_t value, bool *added)
{
    uint64_t hash = hash_key(key);
    struct map_entry *entry;

    if ((map->count + 1) * 3 > map->capacity * 2)
        grow(map);
    entry = find_slot(map, key, hash);
    *added = entry->value == MAP_ABSENT;
    if (*added) {
        *entry = (struct map_entry){key, hash, value};
        map->count++;
    }
    return entry->value;
}

void map_clear(struct map *map)
{
    if (map->count > 0)
        set_free(map->entries, map->capacity);
    map->count = 0;
}

void map_free(struct map *map)
{
    mem_free(map->entries);
    *map = MAP_EMPTY;
}
