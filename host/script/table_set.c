#include "script/table_set.h"

#include "base/memory.h"

#include <stdint.h>
#include <string.h>

#define FIRST_CAPACITY 128
#define KEPT_CAPACITY  8192

/* The slot of the table, or the free one where it belongs. Tables lie at
 * multiples of their size, so the low bits of an address say little. */
static const void **find_slot(const struct table_set *set, const void *table)
{
    uint64_t hash = (uint64_t)(uintptr_t)table * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32);

    for (;; at++) {
        const void **slot = &set->slots[at & (set->capacity - 1)];

        if (*slot == NULL || *slot == table)
            return slot;
    }
}

static void make_slots(struct table_set *set, size_t capacity)
{
    set->slots = mem_alloc(capacity * sizeof(*set->slots));
    set->capacity = capacity;
}

static void grow(struct table_set *set)
{
    const void **old = set->slots;
    size_t n = set->capacity;

    make_slots(set, 2 * n);
    for (size_t i = 0; i < n; i++)
        if (old[i] != NULL)
            *find_slot(set, old[i]) = old[i];
    mem_free(old);
}

static void spill(struct table_set *set)
{
    if (set->slots == NULL)
        make_slots(set, FIRST_CAPACITY);
    else
        memset(set->slots, 0, set->capacity * sizeof(*set->slots));
    for (size_t i = 0; i < TABLE_SET_FEW; i++)
        *find_slot(set, set->few[i]) = set->few[i];
}

bool table_set_add(struct table_set *set, const void *table)
{
    const void **slot;

    if (set->count < TABLE_SET_FEW) {
        for (size_t i = 0; i < set->count; i++)
            if (set->few[i] == table)
                return false;
        set->few[set->count++] = table;
        return true;
    }
    if (set->count == TABLE_SET_FEW)
        spill(set);
    else if (set->count > set->capacity / 2)
        grow(set);
    slot = find_slot(set, table);
    if (*slot == table)
        return false;
    *slot = table;
    set->count++;
    return true;
}

void table_set_clear(struct table_set *set)
{
    set->count = 0;
    if (set->capacity > KEPT_CAPACITY)
        table_set_free(set);
}

void table_set_free(struct table_set *set)
{
    mem_free(set->slots);
    set->slots = NULL;
    set->capacity = 0;
    set->count = 0;
}
