#include "consumer/skipped.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

/* Keys of the map: the position in decimal, and ":key" unless every key. */
static struct text entry_key(struct arena *arena, int64_t position,
                             struct text key)
{
    char number[24];
    size_t digits = (size_t)snprintf(number, sizeof(number), "%" PRId64,
                                     position);
    size_t len = digits + (key.data != NULL ? 1 + key.len : 0);
    char *bytes = arena_alloc(arena, len + 1);

    memcpy(bytes, number, digits);
    if (key.data != NULL) {
        bytes[digits] = ':';
        memcpy(bytes + digits + 1, key.data, key.len);
    }
    bytes[len] = '\0';
    return (struct text){bytes, len};
}

/* Spreads the bits of a hash over all of it. */
static uint64_t spread(uint64_t h)
{
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* A version 8 UUID of what makes the skip one row. */
static struct uuid skip_id(const char *consumer_id, const char *source,
                           const struct skip *skip)
{
    struct buffer name = BUFFER_EMPTY;
    struct uuid id;

    /* lengths first, so that no two names run into each other */
    buffer_printf(&name, "%zu %s %d %" PRId64 " %s ", strlen(source), source,
                  skip->partition, skip->position, consumer_id);
    buffer_append_text(&name, skip->key);
    for (int half = 0; half < 2; half++) {
        uint64_t bits;

        buffer_append_char(&name, (char)('0' + half));
        bits = spread(hash_fnv1a64(buffer_text(&name)));
        for (int i = 0; i < 8; i++)
            id.bytes[8 * half + i] = (uint8_t)(bits >> 8 * (7 - i));
    }
    buffer_free(&name);
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x80);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

enum status skips_record(struct db *db, const struct catalog *catalog,
                         const char *consumer_id, const char *source,
                         const struct skip *skip, struct diag *diag)
{
    const struct db_value params[] = {
        db_uuid(skip_id(consumer_id, source, skip)),
        db_string(consumer_id),
        db_string(source),
        db_integer(skip->partition),
        db_integer(skip->position),
        db_text_value(skip->key.data != NULL ? skip->key : TEXT_LITERAL("")),
        db_boolean(skip->every_key)};

    return db_queue(db, catalog_sql(catalog, SQL_SKIPPED_INSERT), params, 7,
                    DB_ANY_ROWS, -1, diag);
}

enum status skips_forget(struct db *db, const struct catalog *catalog,
                         const char *consumer_id, const char *source,
                         int64_t position, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integer(position)};

    return db_queue(db, catalog_sql(catalog, SQL_SKIPPED_FORGET), params, 3,
                    DB_ANY_ROWS, -1, diag);
}

enum status skips_read(struct db *db, const struct catalog *catalog,
                       const char *consumer_id, const char *source,
                       int64_t after, int64_t upto, struct skips *skips,
                       struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integer(after), db_integer(upto)};
    struct db_rows *rows;
    bool more = false;
    enum status status;

    skips_clear(skips);
    status = db_query(db, catalog_sql(catalog, SQL_SKIPPED_READ), params, 4,
                      &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        struct text key = db_get_bool(rows, 2) ? TEXT_NONE
                                               : db_get_text(rows, 1);
        bool added;

        map_put(&skips->entries,
                entry_key(&skips->arena, db_get_int64(rows, 0), key), 1,
                &added);
    }
    db_rows_close(rows);
    return status;
}

bool skips_hold(const struct skips *skips, int64_t position, struct text key)
{
    struct arena scratch = ARENA_EMPTY;
    bool held;

    if (skips->entries.count == 0)
        return false;
    held = map_get(&skips->entries, entry_key(&scratch, position, TEXT_NONE)) !=
               MAP_ABSENT ||
           (key.data != NULL &&
            map_get(&skips->entries, entry_key(&scratch, position, key)) !=
                MAP_ABSENT);
    arena_free(&scratch);
    return held;
}

void skips_clear(struct skips *skips)
{
    map_clear(&skips->entries);
    arena_reset(&skips->arena);
}

void skips_free(struct skips *skips)
{
    map_free(&skips->entries);
    arena_free(&skips->arena);
}
