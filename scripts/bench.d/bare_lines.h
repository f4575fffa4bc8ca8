/*
 * Bare, lines -- the bank's NDJSON file and the streams that its events go to.
 */
#ifndef BENCH_BARE_LINES_H
#define BENCH_BARE_LINES_H

#include "bare.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line's fields, where they lie. */
struct line {
    struct slice id, type, key, kind, at, metadata, payload;
    uint32_t hash; /* of the key */
};

struct stream {
    char id[BARE_KEY_MAX];
    int size;
    int64_t last; /* sequence number */
    int batch;    /* that has read it; servers */
};

struct streams {
    struct stream *slots;
    uint32_t capacity; /* a power of two */
    uint32_t count;
};

static inline void streams_grow(struct streams *streams)
{
    struct streams grown = {NULL,
                            streams->capacity ? streams->capacity * 2 : 65536,
                            streams->count};

    grown.slots = calloc(grown.capacity, sizeof(*grown.slots));
    if (grown.slots == NULL)
        bare_die("streams", strerror(errno));
    for (uint32_t i = 0; i < streams->capacity; i++) {
        struct stream *from = &streams->slots[i];
        struct slice id = {from->id, from->size};
        uint32_t at;

        if (from->size == 0)
            continue;
        at = bare_fnv1a(id) & (grown.capacity - 1);
        while (grown.slots[at].size != 0)
            at = (at + 1) & (grown.capacity - 1);
        grown.slots[at] = *from;
    }
    free(streams->slots);
    *streams = grown;
}

/* The stream's entry; *fresh says that its last number must still be read. */
static inline struct stream *
streams_get(struct streams *streams, struct slice id, uint32_t hash, int *fresh)
{
    struct stream *slot;
    uint32_t at;

    if (streams->count * 2 >= streams->capacity)
        streams_grow(streams);
    at = hash & (streams->capacity - 1);
    *fresh = 0;
    while ((slot = &streams->slots[at])->size != 0) {
        if (slot->size == id.size &&
            memcmp(slot->id, id.data, (size_t)id.size) == 0)
            return slot;
        at = (at + 1) & (streams->capacity - 1);
    }
    if (id.size == 0 || id.size >= BARE_KEY_MAX)
        bare_die("aggregate_id", "bad length");
    memcpy(slot->id, id.data, (size_t)id.size);
    slot->size = id.size;
    slot->last = -1;
    streams->count++;
    *fresh = 1;
    return slot;
}

/* The fields stand in the order in which generate.lua writes them. */
static inline struct line line_parse(const char *text, int size)
{
    struct line line;
    const char *meta, *payload;

    line.id = bare_text(text, "\"id\":\"");
    line.type = bare_text(line.id.data, "\"aggregate_type\":\"");
    line.key = bare_text(line.type.data, "\"aggregate_id\":\"");
    line.kind = bare_text(line.key.data, "\"type\":\"");
    line.at = bare_text(line.kind.data, "\"occurred_at\":\"");
    meta = strstr(line.at.data, "\"metadata\":") + 11;
    payload = strstr(meta, ",\"payload\":") + 11;
    line.metadata = (struct slice){meta, (int)(payload - 11 - meta)};
    line.payload = (struct slice){payload, (int)(text + size - 2 - payload)};
    line.hash = bare_fnv1a(line.key);
    return line;
}

/* The whole file as one text that ends with a newline. */
static inline struct slice map_file(const char *path)
{
    struct slice text = {NULL, 0};
    struct stat about;
    void *bytes;
    int file = open(path, O_RDONLY);

    if (file < 0 || fstat(file, &about) != 0)
        bare_die(path, strerror(errno));
    if (about.st_size == 0 || about.st_size > INT32_MAX)
        bare_die(path, "is empty or above 2 GiB");
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
        bare_die(path, strerror(errno));
    close(file);
    text.data = bytes;
    text.size = (int)about.st_size;
    if (text.data[text.size - 1] != '\n')
        bare_die(path, "does not end with a newline");
    return text;
}

static inline const char *next_line(const char *line, const char *end)
{
    return (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
}

#endif
