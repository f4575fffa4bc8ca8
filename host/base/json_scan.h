/*
 * JSON scan -- finds the next byte of a string that is not taken as it is,
 * eight bytes at a time. For the readers and writers of JSON only.
 */
#ifndef HOST_BASE_JSON_SCAN_H
#define HOST_BASE_JSON_SCAN_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the first byte of a word is its lowest");

#define JSON_SCAN_EVERY(byte) (UINT64_C(0x0101010101010101) * (byte))
#define JSON_SCAN_HIGH        JSON_SCAN_EVERY(0x80)

/*
 * Sets the high bit of each quote, backslash and control character in `word`.
 * The lowest bit set is exact: a borrow can only set false ones above a true
 * one. Bytes beyond ASCII are never marked.
 */
static inline uint64_t json_scan_marks(uint64_t word)
{
    uint64_t quote = word ^ JSON_SCAN_EVERY('"');
    uint64_t slash = word ^ JSON_SCAN_EVERY('\\');

    return (((word - JSON_SCAN_EVERY(0x20)) & ~word) |
            ((quote - JSON_SCAN_EVERY(1)) & ~quote) |
            ((slash - JSON_SCAN_EVERY(1)) & ~slash)) &
           JSON_SCAN_HIGH;
}

/** The first quote, backslash or control character in `at` to `end`. */
static inline const char *json_scan_special(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word;
        uint64_t marks;

        memcpy(&word, at, 8);
        marks = json_scan_marks(word);
        if (marks != 0)
            return at + (__builtin_ctzll(marks) >> 3);
        at += 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
        at++;
    return at;
}

/** The same, and bytes beyond ASCII. */
static inline const char *json_scan_special_or_high(const char *at,
                                                    const char *end)
{
    while (end - at >= 8) {
        uint64_t word;
        uint64_t marks;

        memcpy(&word, at, 8);
        marks = json_scan_marks(word) | (word & JSON_SCAN_HIGH);
        if (marks != 0)
            return at + (__builtin_ctzll(marks) >> 3);
        at += 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && *at != '"' &&
           *at != '\\' && (*at & 0x80) == 0)
        at++;
    return at;
}

#endif
