/*
 * Hash -- FNV-1a over bytes, as the table reference says, and partitions.
 */
#ifndef HOST_BASE_HASH_H
#define HOST_BASE_HASH_H

#include "base/text.h"

#include <stdint.h>

uint32_t hash_fnv1a32(struct text t);
uint64_t hash_fnv1a64(struct text t); /* key_hash of undelivered messages */

/** Partition of a key: FNV-1a 32 over its UTF-8 bytes, unsigned, mod `n`. */
static inline int hash_partition(struct text key, int n)
{
    return (int)(hash_fnv1a32(key) % (uint32_t)n);
}

#endif
