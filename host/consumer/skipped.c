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

/* --- very many of them ---------------------------------------------------- */

enum {
    COLUMN_ID,
    COLUMN_CONSUMER,
    COLUMN_SOURCE,
    COLUMN_PARTITION,
    COLUMN_POSITION,
    COLUMN_KEY,
    COLUMN_EVERY_KEY,
    COLUMNS,
};

static const struct db_column columns[COLUMNS] = {
    [COLUMN_ID] = {"id", DB_UUID, DB_KEY},
    [COLUMN_CONSUMER] = {"consumer_id", DB_TEXT, DB_SET},
    [COLUMN_SOURCE] = {"source_name", DB_TEXT, DB_SET},
    [COLUMN_PARTITION] = {"partition_no", DB_INT64, DB_SET},
    [COLUMN_POSITION] = {"message_position", DB_INT64, DB_SET},
    [COLUMN_KEY] = {"resolved_key", DB_TEXT, DB_SET},
    [COLUMN_EVERY_KEY] = {"every_key", DB_BOOL, DB_SET},
};

static enum status note_recorded(void *arg, size_t index, struct db_rows *row,
                                 struct diag *diag)
{
    bool *recorded = arg;

    (void)row;
    (void)diag;
    recorded[index] = true;
    return STATUS_OK;
}

/* Which of them have a row. One that has stays as it is, unless this one is for
 * every key. */
static enum status find_recorded(struct db *db, const struct db_table *table,
                                 const struct uuid *ids, size_t count,
                                 struct arena *arena, bool *recorded,
                                 struct diag *diag)
{
    struct text *keys = arena_alloc(arena, count * sizeof(*keys));
    char(*texts)[UUID_TEXT_LEN + 1] = arena_alloc(arena,
                                                  count * sizeof(*texts));

    for (size_t i = 0; i < count; i++) {
        uuid_format(&ids[i], texts[i]);
        keys[i] = text_of(texts[i]);
    }
    return db_lookup(db, table, keys, count, note_recorded, recorded, diag);
}

enum status skips_record_all(struct db *db, const struct names *names,
                             const char *consumer_id, const char *source,
                             const struct skip *skips, size_t count,
                             struct arena *arena, struct diag *diag)
{
    struct db_table *table = arena_alloc_zero(arena, sizeof(*table));
    struct uuid *ids = arena_alloc(arena, count * sizeof(*ids) + 1);
    bool *recorded = arena_alloc_zero(arena, count + 1);
    struct db_value *values = arena_alloc(arena, (count * COLUMNS + 1) *
                                                     sizeof(*values));
    size_t rows = 0;
    enum status status;

    *table = (struct db_table){
        .name = names->table[TABLE_SKIPPED],
        .columns = columns,
        .ncolumns = COLUMNS,
        .origin = DB_HOST,
    };
    for (size_t i = 0; i < count; i++)
        ids[i] = skip_id(consumer_id, source, &skips[i]);
    if (count == 0)
        return STATUS_OK;
    status = find_recorded(db, table, ids, count, arena, recorded, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const struct skip *s = &skips[i];
        struct db_value *v = values + rows * COLUMNS;

        if (recorded[i] && !s->every_key)
            continue;
        v[COLUMN_ID] = db_uuid(ids[i]);
        v[COLUMN_CONSUMER] = db_string(consumer_id);
        v[COLUMN_SOURCE] = db_string(source);
        v[COLUMN_PARTITION] = db_integer(s->partition);
        v[COLUMN_POSITION] = db_integer(s->position);
        v[COLUMN_KEY] = db_text_value(s->key.data != NULL ? s->key
                                                          : TEXT_LITERAL(""));
        v[COLUMN_EVERY_KEY] = db_boolean(s->every_key);
        rows++;
    }
    if (rows == 0)
        return STATUS_OK;
    return db_queue_bulk(db, DB_UPSERT, table, values, rows, -1, diag);
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
