#include "base/sha1.h"

#include <string.h>

#define BLOCK  sizeof(((struct sha1 *)NULL)->block)
#define LENGTH 8 /* bytes of the length at the end of the last block */

static uint32_t rotate(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t load(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static void store(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 24);
    bytes[1] = (uint8_t)(value >> 16);
    bytes[2] = (uint8_t)(value >> 8);
    bytes[3] = (uint8_t)value;
}

/* FIPS 180-4, 6.1.2: one block. */
static void mix(struct sha1 *sha1)
{
    static const uint32_t constants[4] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC,
                                          0xCA62C1D6};
    uint32_t words[80];
    uint32_t a = sha1->state[0], b = sha1->state[1], c = sha1->state[2];
    uint32_t d = sha1->state[3], e = sha1->state[4];

    for (int i = 0; i < 16; i++)
        words[i] = load(sha1->block + (size_t)4 * i);
    for (int i = 16; i < 80; i++)
        words[i] = rotate(
            words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i / 20 == 0   ? (b & c) | (~b & d)
                     : i / 20 == 2 ? (b & c) | (b & d) | (c & d)
                                   : b ^ c ^ d;
        uint32_t next = rotate(a, 5) + f + e + constants[i / 20] + words[i];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    sha1->state[0] += a;
    sha1->state[1] += b;
    sha1->state[2] += c;
    sha1->state[3] += d;
    sha1->state[4] += e;
}

void sha1_begin(struct sha1 *sha1)
{
    *sha1 = (struct sha1){
        .state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0},
    };
}

void sha1_add(struct sha1 *sha1, const void *data, size_t len)
{
    const uint8_t *bytes = data;

    while (len > 0) {
        size_t at = sha1->length % BLOCK;
        size_t part = len < BLOCK - at ? len : BLOCK - at;

        memcpy(sha1->block + at, bytes, part);
        sha1->length += part;
        bytes += part;
        len -= part;
        if (at + part == BLOCK)
            mix(sha1);
    }
}

void sha1_end(struct sha1 *sha1, uint8_t out[SHA1_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = sha1->length * 8;
    size_t at = sha1->length % BLOCK;
    uint8_t length[LENGTH];

    sha1_add(sha1, padding,
             at < BLOCK - LENGTH ? BLOCK - LENGTH - at
                                 : 2 * BLOCK - LENGTH - at);
    store(length, (uint32_t)(bits >> 32));
    store(length + 4, (uint32_t)bits);
    sha1_add(sha1, length, sizeof(length));
    for (int i = 0; i < 5; i++)
        store(out + (size_t)4 * i, sha1->state[i]);
}
