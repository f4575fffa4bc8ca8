/*
 * Bare -- what the bare loops of scripts/bench share: errors, hashes, scanning
 * of JSON text, ids. The loops do by hand, with a client library only, the SQL
 * work that the host does for the bank example, and are the limit that the
 * host is measured against. They are no part of the host and trust their
 * input.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BARE_BATCH      500
#define BARE_PARTITIONS 16
#define BARE_KEY_MAX    256

struct slice {
    const char *data;
    int size;
};

static inline void bare_die(const char *what, const char *why)
{
    fprintf(stderr, "bare: %s: %s\n", what, why);
    exit(1);
}

static inline uint32_t bare_fnv1a(struct slice text)
{
    uint32_t hash = UINT32_C(2166136261);

    for (int i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT32_C(16777619);
    return hash;
}

/* The number after a mark such as "amount": in JSON text. */
static inline int64_t bare_number(const char *json, const char *mark)
{
    const char *found = strstr(json, mark);

    return found == NULL ? 0 : strtoll(found + strlen(mark), NULL, 10);
}

/* The text between a mark such as "iban":" and the next quote. */
static inline struct slice bare_text(const char *json, const char *mark)
{
    struct slice text = {"", 0};
    const char *found = strstr(json, mark);

    if (found == NULL)
        return text;
    text.data = found + strlen(mark);
    text.size = (int)(strchr(text.data, '"') - text.data);
    return text;
}

/* A UUIDv7 as text: the millisecond, then a counter that only rises. */
static inline void bare_uuid(char out[37])
{
    static uint64_t counter = UINT64_C(0x0123456789ab);
    static const char digits[] = "0123456789abcdef";
    struct timespec now;
    uint64_t ms, high, low;
    int at = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    counter++;
    high = ms << 16 | UINT64_C(0x7000) | (counter >> 48 & 0xfff);
    low = UINT64_C(0x8000000000000000) | (counter & UINT64_C(0xffffffffffff));
    for (int i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? high : low;

        if (i == 8 || i == 12 || i == 16 || i == 20)
            out[at++] = '-';
        out[at++] = digits[half >> (60 - 4 * (i % 16)) & 15];
    }
    out[at] = '\0';
}

/* Microseconds since 1970. */
static inline int64_t bare_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* "2026-01-31 12:00:00.000000", with another letter for the space, and an
 * end. */
static inline const char *bare_time(char between, const char *end)
{
    static char text[48];
    int64_t now = bare_now();
    time_t seconds = (time_t)(now / 1000000);
    struct tm parts;
    size_t size;

    gmtime_r(&seconds, &parts);
    size = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
    text[10] = between;
    snprintf(text + size, sizeof(text) - size, ".%06d%s", (int)(now % 1000000),
             end);
    return text;
}

#endif
