/*
 * Digest -- BLAKE2b of a sequence of texts, as short text. For what must tell
 * two contents apart for good; partitions and maps have base/hash.h.
 */
#ifndef HOST_BASE_DIGEST_H
#define HOST_BASE_DIGEST_H

#include "base/text.h"

#include <sodium.h>
#include <stdint.h>

#define DIGEST_BYTES 18 /* 144 bits */
#define DIGEST_LEN   24 /* characters of its text: letters, digits, - and _ */

/** Plain data; nothing is owed. */
struct digest {
    crypto_generichash_state state;
};

void digest_begin(struct digest *digest);

/** Adds a text with its length, so that "ab", "c" is not "a", "bc"; a text
 * that is no value (NULL) differs from an empty one. */
void digest_text(struct digest *digest, struct text text);

void digest_integer(struct digest *digest, int64_t value);

/** The text of what was added, with a NUL. Begin before the next use. */
void digest_end(struct digest *digest, char out[DIGEST_LEN + 1]);

#endif
