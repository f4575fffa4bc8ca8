/*
 * UTF-8 -- one character at a time, for the loops of base that look at bytes.
 * Everybody else asks text.h.
 */
#ifndef HOST_BASE_UTF8_H
#define HOST_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_IS_TAIL(byte) (((byte)&0xC0) == 0x80)

/**
 * Bytes of the valid character at `at` (before `end`), 0 when there is none:
 * a stray or missing tail byte, an overlong form, a surrogate, above U+10FFFF.
 */
static inline size_t utf8_char(const char *at, const char *end)
{
    const uint8_t *b = (const uint8_t *)at;
    size_t left = (size_t)(end - at);

    if (left == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    if (b[0] < 0xE0) {
        if (b[0] < 0xC2 || left < 2 || !UTF8_IS_TAIL(b[1]))
            return 0;
        return 2;
    }
    if (b[0] < 0xF0) {
        if (left < 3 || !UTF8_IS_TAIL(b[1]) || !UTF8_IS_TAIL(b[2]))
            return 0;
        if ((b[0] == 0xE0 && b[1] < 0xA0) || (b[0] == 0xED && b[1] > 0x9F))
            return 0;
        return 3;
    }
    if (b[0] > 0xF4 || left < 4 || !UTF8_IS_TAIL(b[1]) || !UTF8_IS_TAIL(b[2]) ||
        !UTF8_IS_TAIL(b[3]))
        return 0;
    if ((b[0] == 0xF0 && b[1] < 0x90) || (b[0] == 0xF4 && b[1] > 0x8F))
        return 0;
    return 4;
}

/** Writes the UTF-8 form of a code point, returns its length. */
static inline size_t utf8_encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

#endif
