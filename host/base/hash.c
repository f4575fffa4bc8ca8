#include "base/hash.h"

/* Bytes are read as unsigned: plain char may be signed. */

uint32_t hash_fnv1a32(struct text t)
{
    const uint8_t *bytes = (const uint8_t *)t.data;
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < t.len; i++)
        hash = (hash ^ bytes[i]) * UINT32_C(16777619);
    return hash;
}

uint64_t hash_fnv1a64(struct text t)
{
    const uint8_t *bytes = (const uint8_t *)t.data;
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < t.len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}
