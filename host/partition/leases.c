#include "partition/leases.h"

#include "base/memory.h"

static void list_anew(struct leases *leases)
{
    leases->count = 0;
    for (int p = 0; p < leases->partitions; p++) {
        if (!leases_hold(leases, p))
            continue;
        leases->mine[leases->count] = p;
        leases->generations[leases->count++] = leases->generation[p];
    }
}

void leases_init(struct leases *leases, int partitions)
{
    *leases = (struct leases){.partitions = partitions};
    leases->generation = mem_alloc((size_t)partitions *
                                   sizeof(*leases->generation));
    leases->taken_over = mem_alloc((size_t)partitions *
                                   sizeof(*leases->taken_over));
    leases->mine = mem_alloc((size_t)partitions * sizeof(*leases->mine));
    leases->generations = mem_alloc((size_t)partitions *
                                    sizeof(*leases->generations));
}

void leases_free(struct leases *leases)
{
    mem_free(leases->generation);
    mem_free(leases->taken_over);
    mem_free(leases->mine);
    mem_free(leases->generations);
    *leases = (struct leases){.partitions = 0};
}

void leases_set(struct leases *leases, int partition, int64_t generation)
{
    if (leases->generation[partition] == generation)
        return;
    leases->generation[partition] = generation;
    leases->taken_over[partition] = false;
    leases->changed = true;
    list_anew(leases);
}

void leases_drop_all(struct leases *leases)
{
    for (int p = 0; p < leases->partitions; p++)
        leases_set(leases, p, LEASE_NONE);
}
