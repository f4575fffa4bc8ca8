/*
 * SHA-1 -- only where a standard asks for it (UUID version 5). It is no
 * protection against anybody; what must tell contents apart takes
 * base/digest.h.
 */
#ifndef HOST_BASE_SHA1_H
#define HOST_BASE_SHA1_H

#include "base/text.h"

#include <stdint.h>

#define SHA1_BYTES 20

/** Plain data; nothing is owed. */
struct sha1 {
    uint32_t state[5];
    uint64_t length; /* bytes added */
    uint8_t block[64];
};

void sha1_begin(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, const void *data, size_t len);
/** Begin before the next use. */
void sha1_end(struct sha1 *sha1, uint8_t out[SHA1_BYTES]);

#endif
