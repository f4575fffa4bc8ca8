#include "topic/read_model_append.h"

#include "base/hash.h"
#include "topic/message.h"
#include "topic/notify.h"

enum column {
    COLUMN_ID,
    COLUMN_TOPIC,
    COLUMN_POSITION,
    COLUMN_PARTITION,
    COLUMN_KEY,
    COLUMN_TYPE,
    COLUMN_REVISION,
    COLUMN_PAYLOAD,
    COLUMN_METADATA,
    COLUMN_DEPTH,
    COLUMN_DELETED,
    COLUMN_OCCURRED_AT,
    COLUMNS
};

static const struct db_column columns[COLUMNS] = {
    [COLUMN_ID] = {"id", DB_UUID, DB_KEY},
    [COLUMN_TOPIC] = {"topic", DB_TEXT, DB_SET},
    [COLUMN_POSITION] = {"topic_position", DB_INT64, DB_SET},
    [COLUMN_PARTITION] = {"partition_key", DB_INT64, DB_SET},
    [COLUMN_KEY] = {"read_model_key", DB_TEXT, DB_SET},
    [COLUMN_TYPE] = {"read_model_type", DB_TEXT, DB_SET},
    [COLUMN_REVISION] = {"read_model_revision", DB_INT64, DB_SET},
    [COLUMN_PAYLOAD] = {"payload", DB_TEXT, DB_SET},
    [COLUMN_METADATA] = {"metadata", DB_TEXT, DB_SET},
    [COLUMN_DEPTH] = {"cascade_depth", DB_INT64, DB_SET},
    [COLUMN_DELETED] = {"deleted", DB_BOOL, DB_SET},
    [COLUMN_OCCURRED_AT] = {"occurred_at", DB_TIMESTAMP, DB_SET},
};

void read_model_writer_init(struct read_model_writer *writer,
                            const char *projection, const struct names *names,
                            const struct catalog *catalog, int partitions,
                            bool notify)
{
    *writer = (struct read_model_writer){
        .topic = projection,
        .catalog = catalog,
        .rows =
            {
                .name = names->table[TABLE_READ_MODEL_RECORDS],
                .columns = columns,
                .ncolumns = COLUMNS,
                .origin = DB_HOST,
            },
        .partitions = partitions,
        .notify = notify,
    };
}

static struct text id_text(struct arena *arena, const struct uuid *id)
{
    char *text = arena_alloc(arena, UUID_TEXT_LEN + 1);

    uuid_format(id, text);
    return (struct text){text, UUID_TEXT_LEN};
}

/* One statement that draws the positions as well: it goes out with the rest. */
static enum status queue_arrays(const struct read_model_writer *w,
                                struct db *db, int64_t now_us,
                                const struct read_model_message *messages,
                                size_t count, struct arena *arena,
                                struct diag *diag)
{
    struct text *texts = arena_alloc(arena, 4 * count * sizeof(*texts));
    int64_t *numbers = arena_alloc(arena, 3 * count * sizeof(*numbers));
    struct text *ids = texts, *keys = texts + count, *states = keys + count,
                *metadata = states + count;
    int64_t *partitions = numbers, *depths = numbers + count,
            *deleted = depths + count;
    const struct db_value params[] = {
        db_string(w->topic),         db_timestamp(now_us),
        db_texts(ids, count),        db_integers(partitions, count),
        db_texts(keys, count),       db_texts(states, count),
        db_texts(metadata, count),   db_integers(depths, count),
        db_integers(deleted, count),
    };

    for (size_t i = 0; i < count; i++) {
        const struct read_model_message *m = &messages[i];

        ids[i] = id_text(arena, &m->id);
        partitions[i] = hash_partition(m->key, w->partitions);
        keys[i] = m->key;
        states[i] = m->state;
        metadata[i] = m->metadata;
        depths[i] = m->cascade_depth;
        deleted[i] = m->deleted;
    }
    return db_queue(db, catalog_sql(w->catalog, SQL_READ_MODEL_APPEND), params,
                    9, (int64_t)count, 0, diag);
}

static enum status draw(const struct read_model_writer *w, struct db *db,
                        size_t count, int64_t *position, struct diag *diag)
{
    const struct db_value params[] = {db_string(w->topic),
                                      db_integer((int64_t)count)};
    bool found = false;
    enum status status = db_query_int64(
        db, catalog_sql(w->catalog, SQL_READ_MODEL_POSITIONS), params, 2,
        position, &found, diag);

    if (status == STATUS_OK && !found)
        return diag_set(diag, STATUS_CONFIG,
                        "topic " TOPIC_READ_MODEL "%s has no position counter "
                        "in this database: a restart of the host makes it",
                        w->topic);
    return status;
}

static enum status queue_rows(const struct read_model_writer *w, struct db *db,
                              int64_t now_us,
                              const struct read_model_message *messages,
                              size_t count, struct arena *arena,
                              struct diag *diag)
{
    struct db_value *values = arena_alloc(arena,
                                          count * COLUMNS * sizeof(*values));
    int64_t position = 0;
    enum status status = draw(w, db, count, &position, diag);

    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const struct read_model_message *m = &messages[i];
        struct db_value *v = values + i * COLUMNS;

        v[COLUMN_ID] = db_uuid(m->id);
        v[COLUMN_TOPIC] = v[COLUMN_TYPE] = db_string(w->topic);
        v[COLUMN_POSITION] = db_integer(position + (int64_t)i);
        v[COLUMN_PARTITION] = db_integer(hash_partition(m->key, w->partitions));
        v[COLUMN_KEY] = db_text_value(m->key);
        v[COLUMN_REVISION] = db_integer(0);
        v[COLUMN_PAYLOAD] = db_text_value(m->state);
        v[COLUMN_METADATA] = db_text_value(m->metadata);
        v[COLUMN_DEPTH] = db_integer(m->cascade_depth);
        v[COLUMN_DELETED] = db_boolean(m->deleted);
        v[COLUMN_OCCURRED_AT] = db_timestamp(now_us);
    }
    return db_queue_bulk(db, DB_INSERT, &w->rows, values, count, 0, diag);
}

enum status read_model_append(const struct read_model_writer *w, struct db *db,
                              int64_t now_us,
                              const struct read_model_message *messages,
                              size_t count, struct arena *arena,
                              struct diag *diag)
{
    enum status status;

    if (count == 0)
        return STATUS_OK;
    if ((db_abilities(db) & DB_CAN_SEQUENCE) != 0)
        status = queue_arrays(w, db, now_us, messages, count, arena, diag);
    else
        status = queue_rows(w, db, now_us, messages, count, arena, diag);
    if (status == STATUS_OK && w->notify)
        status = notify_send(db, w->catalog, diag);
    return status;
}
