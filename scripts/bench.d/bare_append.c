/*
 * bare_append DATABASE FILE -- appends the bank's NDJSON file: finds the fields
 * by their marks, counts sequence numbers in memory, 500 events a transaction.
 */
#include "bare.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct stream {
    char id[BARE_KEY_MAX];
    int size;
    int64_t last; /* sequence number */
};

struct streams {
    struct stream *slots;
    uint32_t capacity; /* a power of two */
    uint32_t count;
};

static void streams_grow(struct streams *streams)
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

/* The stream's entry; `last` is read from the table at first sight. */
static struct stream *streams_get(struct streams *streams, sqlite3_stmt *last,
                                  struct slice type, struct slice id,
                                  uint32_t hash)
{
    struct stream *slot;
    uint32_t at;

    if (streams->count * 2 >= streams->capacity)
        streams_grow(streams);
    at = hash & (streams->capacity - 1);
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
    bare_bind(last, 1, type);
    bare_bind(last, 2, id);
    while (bare_row(last))
        if (sqlite3_column_type(last, 0) != SQLITE_NULL)
            slot->last = sqlite3_column_int64(last, 0);
    return slot;
}

static int64_t draw_positions(sqlite3_stmt *counter, int count)
{
    int64_t first = 0;

    sqlite3_bind_int(counter, 1, count);
    while (bare_row(counter))
        first = sqlite3_column_int64(counter, 0);
    return first;
}

/* The fields stand in the order in which generate.lua writes them. */
static void insert_line(sqlite3_stmt *insert, sqlite3_stmt *last,
                        struct streams *streams, const char *line, int size,
                        int64_t position)
{
    struct slice id = bare_text(line, "\"id\":\"");
    struct slice type = bare_text(id.data, "\"aggregate_type\":\"");
    struct slice key = bare_text(type.data, "\"aggregate_id\":\"");
    struct slice kind = bare_text(key.data, "\"type\":\"");
    struct slice at = bare_text(kind.data, "\"occurred_at\":\"");
    const char *meta = strstr(at.data, "\"metadata\":") + 11;
    const char *payload = strstr(meta, ",\"payload\":") + 11;
    struct slice metadata = {meta, (int)(payload - 11 - meta)};
    struct slice body = {payload, (int)(line + size - 2 - payload)};
    uint32_t hash = bare_fnv1a(key);
    struct stream *stream = streams_get(streams, last, type, key, hash);

    bare_bind(insert, 1, id);
    bare_bind(insert, 2, key);
    bare_bind(insert, 3, type);
    sqlite3_bind_int64(insert, 4, ++stream->last);
    bare_bind(insert, 5, kind);
    bare_bind(insert, 6, body);
    bare_bind(insert, 7, metadata);
    bare_bind(insert, 8, at);
    sqlite3_bind_int(insert, 9, (int)(hash % BARE_PARTITIONS));
    sqlite3_bind_int64(insert, 10, position);
    bare_run(insert);
}

/* The whole file as one text that ends with a newline. */
static struct slice map_file(const char *path)
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

static const char *next_line(const char *line, const char *end)
{
    return (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
}

int main(int argc, char **argv)
{
    struct streams streams = {NULL, 0, 0};
    sqlite3_stmt *begin, *commit, *counter, *last, *insert;
    const char *line, *end;
    struct slice text;
    sqlite3 *db;

    if (argc != 3)
        bare_die("usage", "bare_append DATABASE FILE");
    text = map_file(argv[2]);
    db = bare_open(argv[1]);
    begin = bare_prepare(db, "BEGIN IMMEDIATE");
    commit = bare_prepare(db, "COMMIT");
    counter = bare_prepare(db, "UPDATE EVENT_STORE_GLOBAL_POSITION"
                               " SET val = val + ?1 WHERE id = 1"
                               " RETURNING val - ?1 + 1");
    last = bare_prepare(db, "SELECT max(sequence_no) FROM EVENT_STORE"
                            " WHERE aggregate_type = ?1 AND aggregate_id = ?2");
    insert = bare_prepare(
        db, "INSERT INTO EVENT_STORE (id, aggregate_id, aggregate_type,"
            " sequence_no, event_type, event_revision, payload, metadata,"
            " occurred_at, partition_key, global_position)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10)");

    line = text.data;
    end = text.data + text.size;
    while (line < end) {
        const char *ahead = line;
        int64_t position;
        int count = 0;

        while (ahead < end && count < BARE_BATCH) {
            ahead = next_line(ahead, end);
            count++;
        }
        bare_run(begin);
        position = draw_positions(counter, count);
        while (line < ahead) {
            const char *next = next_line(line, end);

            insert_line(insert, last, &streams, line, (int)(next - line),
                        position++);
            line = next;
        }
        bare_run(commit);
    }
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(counter);
    sqlite3_finalize(last);
    sqlite3_finalize(insert);
    if (sqlite3_close(db) != SQLITE_OK)
        bare_die(argv[1], sqlite3_errmsg(db));
    free(streams.slots);
    return 0;
}
