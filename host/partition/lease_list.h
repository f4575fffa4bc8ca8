/*
 * Lease list -- leases as statements take many of them: a list for each of
 * consumer's type, its name, partition and generation.
 */
#ifndef HOST_PARTITION_LEASE_LIST_H
#define HOST_PARTITION_LEASE_LIST_H

#include "base/arena.h"
#include "base/text.h"

#include <stdint.h>

struct lease_list {
    struct text *types, *names;
    int64_t *partitions, *generations;
    size_t count;
};

/** For up to `room` leases; lives in the arena. */
struct lease_list lease_list_make(struct arena *arena, size_t room);

/** Borrows the strings. */
void lease_list_add(struct lease_list *list, const char *type, const char *name,
                    int partition, int64_t generation);

#endif
