#include "consumer/undelivered_keys.h"

#include "base/memory.h"

void undelivered_keys_init(struct undelivered_keys *keys, int partitions)
{
    *keys = (struct undelivered_keys){
        .partitions = partitions,
        .blocked = mem_alloc((size_t)partitions * sizeof(bool)),
    };
}

void undelivered_keys_hold(struct undelivered_keys *keys, struct text key,
                           enum key_hold hold)
{
    struct text asked = key.data == NULL ? TEXT_LITERAL("") : key;
    bool added;

    if (map_get(&keys->keys, asked) == MAP_ABSENT) {
        if (hold != KEY_FREE)
            map_put(&keys->keys, arena_copy(&keys->arena, asked), hold, &added);
        return;
    }
    map_set(&keys->keys, asked, hold);
}

enum key_hold undelivered_keys_held(const struct undelivered_keys *keys,
                                    struct text key)
{
    int64_t hold;

    if (keys->keys.count == 0)
        return KEY_FREE;
    hold = map_get(&keys->keys, key.data == NULL ? TEXT_LITERAL("") : key);
    return hold == MAP_ABSENT ? KEY_FREE : (enum key_hold)hold;
}

void undelivered_keys_clear(struct undelivered_keys *keys)
{
    map_clear(&keys->keys);
    arena_reset(&keys->arena);
    memset(keys->blocked, 0, (size_t)keys->partitions * sizeof(bool));
}

void undelivered_keys_free(struct undelivered_keys *keys)
{
    map_free(&keys->keys);
    arena_free(&keys->arena);
    mem_free(keys->blocked);
}

/* One row: key, unresolved, partition of an unresolved one, dead. */
static enum status hold_take(void *arg, struct db_rows *rows, struct diag *diag)
{
    struct undelivered_keys *keys = arg;
    int64_t partition = db_get_int64(rows, 2);

    if (!db_get_bool(rows, 1)) {
        undelivered_keys_hold(keys, db_get_text(rows, 0),
                              db_get_int64(rows, 3) != 0 ? KEY_DEAD
                                                         : KEY_WAITS);
        return STATUS_OK;
    }
    if (partition < 0 || partition >= keys->partitions)
        return diag_set(diag, STATUS_PERMANENT,
                        "an undelivered message lies in partition %lld, and "
                        "there are %d",
                        (long long)partition, keys->partitions);
    keys->blocked[partition] = true;
    return STATUS_OK;
}

enum status undelivered_keys_read(struct db *db, const struct catalog *catalog,
                                  const char *consumer_id, const char *source,
                                  struct undelivered_keys *keys,
                                  struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id),
                                      db_string(source)};

    undelivered_keys_clear(keys);
    return db_rows_each(db, catalog_sql(catalog, SQL_UNDELIVERED_KEYS), params,
                        2, hold_take, keys, diag);
}
