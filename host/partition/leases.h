/*
 * Leases -- which partitions of one consumer this instance may apply, and under
 * which generation, as far as it knows. Whether it still may is checked in
 * every processing transaction. Pure memory; the coordinator fills it.
 */
#ifndef HOST_PARTITION_LEASES_H
#define HOST_PARTITION_LEASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEASE_NONE                                                             \
    INT64_C(0) /* generations of leases that are held begin at 1 */

struct leases {
    int partitions;
    int64_t *generation;  /* by partition; LEASE_NONE: not held */
    bool *taken_over;     /* by partition: from one that had lapsed */
    int64_t *mine;        /* the partitions that are held, rising */
    int64_t *generations; /* of them */
    size_t count;
    bool changed; /* since whoever applies has looked */
};

void leases_init(struct leases *leases, int partitions);
void leases_free(struct leases *leases);

static inline bool leases_hold(const struct leases *leases, int partition)
{
    return leases->generation[partition] != LEASE_NONE;
}

/** True when all partitions are held. */
static inline bool leases_hold_all(const struct leases *leases)
{
    return leases->count == (size_t)leases->partitions;
}

/** Sets or, with LEASE_NONE, drops a lease. */
void leases_set(struct leases *leases, int partition, int64_t generation);
void leases_drop_all(struct leases *leases);

#endif
