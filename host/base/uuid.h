/*
 * UUID -- 16 bytes, their text form, and versions 5 and 7 (RFC 9562).
 */
#ifndef HOST_BASE_UUID_H
#define HOST_BASE_UUID_H

#include "base/text.h"

#include <stdint.h>

#define UUID_TEXT_LEN 36

struct uuid {
    uint8_t bytes[16];
};

/**
 * Makes version 7 ids that rise within one source, also when the clock stands
 * still or goes back. Starts as all zero. One owner, no locking; a forked
 * child starts its own, or it would repeat the random bits of its parent.
 */
struct uuid_source {
    int64_t last_ms;
    uint32_t counter;  /* 18 bits of rand_a and the top of rand_b */
    uint64_t pool[32]; /* random words from getrandom, used up one by one */
    unsigned left;
};

/** Time-ordered id for `now_us` (microseconds since 1970, UTC). */
struct uuid uuid_v7(struct uuid_source *source, int64_t now_us);

/** The id that a name has within a namespace: the same for ever. */
struct uuid uuid_v5(const struct uuid *space, struct text name);

/**
 * Accepts 8-4-4-4-12 hex digits in either case, nothing else (no braces, no
 * missing dashes). False leaves *uuid alone.
 */
bool uuid_parse(struct text t, struct uuid *uuid);

/** Lower case, 36 characters and a NUL. */
void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_LEN + 1]);

static inline bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
