/*
 * Rendezvous -- which living member is to have which partition of a consumer.
 *
 * Every member computes it by itself from what all read in the same tables, so
 * it is a pure function of that. Each partition has a score with each member,
 * by hash, and wants the highest. Members take equal shares, at most one
 * partition more than another; a partition stays with whoever holds it and
 * lives, unless that one has more than its share. So an arrival is given its
 * share and nothing else moves, and of a member that is gone only what it held.
 */
#ifndef HOST_PARTITION_RENDEZVOUS_H
#define HOST_PARTITION_RENDEZVOUS_H

#include "base/text.h"

#include <stdbool.h>

#define RENDEZVOUS_NOBODY (-1)

struct rendezvous {
    const char *type, *name;    /* of the consumer */
    bool together;              /* all of its partitions go to one member */
    const struct text *members; /* their ids, sorted, each once */
    int nmembers;
    int partitions;
    const int *holders; /* by partition: index of a member, or NOBODY */
};

/** Fills `wanted`, by partition, with the index of a member; NOBODY when there
 * are no members. */
void rendezvous_assign(const struct rendezvous *rendezvous, int *wanted);

#endif
