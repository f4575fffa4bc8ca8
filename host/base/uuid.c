#include "base/uuid.h"

#include "base/sha1.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define COUNTER_BITS 18
#define COUNTER_MAX  ((UINT32_C(1) << COUNTER_BITS) - 1)
#define POOL_WORDS   (sizeof((struct uuid_source *)NULL)->pool / sizeof(uint64_t))

static void fill_pool(struct uuid_source *source)
{
    static const char line[] = "moontide: the system gives no random numbers\n";
    ssize_t got;

    /* Up to 256 bytes come whole once the system's pool is ready. */
    do {
        got = getrandom(source->pool, sizeof(source->pool), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(source->pool)) {
        got = write(STDERR_FILENO, line, sizeof(line) - 1);
        (void)got;
        abort();
    }
    source->left = POOL_WORDS;
}

static uint64_t next_random(struct uuid_source *source)
{
    if (source->left == 0)
        fill_pool(source);
    return source->pool[--source->left];
}

/*
 * RFC 9562, 6.2 method 1: the counter starts at a random value in its lower
 * half at each new millisecond and rises by one within it. When it is full the
 * time part runs ahead of the clock.
 */
struct uuid uuid_v7(struct uuid_source *source, int64_t now_us)
{
    int64_t now_ms = now_us / 1000;
    uint64_t random = next_random(source);
    uint64_t high;
    uint64_t low;
    struct uuid uuid;

    if (now_ms > source->last_ms || source->counter == COUNTER_MAX) {
        source->last_ms = now_ms > source->last_ms ? now_ms
                                                   : source->last_ms + 1;
        source->counter = next_random(source) & (COUNTER_MAX >> 1);
    } else {
        source->counter++;
    }
    high = (uint64_t)source->last_ms << 16 | UINT64_C(0x7000) |
           source->counter >> 6;
    low = UINT64_C(1) << 63 | (uint64_t)(source->counter & 0x3F) << 56 |
          random >> 8;
    high = __builtin_bswap64(high);
    low = __builtin_bswap64(low);
    memcpy(uuid.bytes, &high, 8);
    memcpy(uuid.bytes + 8, &low, 8);
    return uuid;
}

struct uuid uuid_v5(const struct uuid *space, struct text name)
{
    uint8_t digest[SHA1_BYTES];
    struct sha1 sha1;
    struct uuid uuid;

    sha1_begin(&sha1);
    sha1_add(&sha1, space->bytes, sizeof(space->bytes));
    sha1_add(&sha1, name.data, name.len);
    sha1_end(&sha1, digest);
    memcpy(uuid.bytes, digest, sizeof(uuid.bytes));
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0F) | 0x50);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3F) | 0x80);
    return uuid;
}

/* Where the two digits of each byte are in the text form. */
static const uint8_t digit_at[16] = {0,  2,  4,  6,  9,  11, 14, 16,
                                     19, 21, 24, 26, 28, 30, 32, 34};

#define IS_HEX 0x10 /* marks the digits in hex_value */

static const uint8_t hex_value[256] = {
    ['0'] = IS_HEX | 0,  ['1'] = IS_HEX | 1,  ['2'] = IS_HEX | 2,
    ['3'] = IS_HEX | 3,  ['4'] = IS_HEX | 4,  ['5'] = IS_HEX | 5,
    ['6'] = IS_HEX | 6,  ['7'] = IS_HEX | 7,  ['8'] = IS_HEX | 8,
    ['9'] = IS_HEX | 9,  ['a'] = IS_HEX | 10, ['b'] = IS_HEX | 11,
    ['c'] = IS_HEX | 12, ['d'] = IS_HEX | 13, ['e'] = IS_HEX | 14,
    ['f'] = IS_HEX | 15, ['A'] = IS_HEX | 10, ['B'] = IS_HEX | 11,
    ['C'] = IS_HEX | 12, ['D'] = IS_HEX | 13, ['E'] = IS_HEX | 14,
    ['F'] = IS_HEX | 15,
};

bool uuid_parse(struct text t, struct uuid *uuid)
{
    const uint8_t *digits = (const uint8_t *)t.data;
    unsigned good = IS_HEX;
    struct uuid parsed;

    if (t.len != UUID_TEXT_LEN || digits[8] != '-' || digits[13] != '-' ||
        digits[18] != '-' || digits[23] != '-')
        return false;
    for (size_t i = 0; i < sizeof(parsed.bytes); i++) {
        unsigned high = hex_value[digits[digit_at[i]]];
        unsigned low = hex_value[digits[digit_at[i] + 1]];

        good &= high & low;
        parsed.bytes[i] = (uint8_t)(high << 4 | (low & 0x0F));
    }
    if (good == 0)
        return false;
    *uuid = parsed;
    return true;
}

void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
        out[digit_at[i]] = digits[uuid->bytes[i] >> 4];
        out[digit_at[i] + 1] = digits[uuid->bytes[i] & 0x0F];
    }
    out[8] = out[13] = out[18] = out[23] = '-';
    out[UUID_TEXT_LEN] = '\0';
}
