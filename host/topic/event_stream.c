#include "topic/event_stream.h"

#include "topic/event_store_parts.h"

struct reading {
    struct arena *arena;
    struct message *messages;
    size_t count, limit;
};

static enum status take_row(void *arg, struct db_rows *rows, struct diag *diag)
{
    struct reading *reading = arg;

    (void)diag;
    if (reading->count < reading->limit)
        topic_message_copy(reading->arena, rows,
                           &reading->messages[reading->count++]);
    return STATUS_OK;
}

enum status event_stream_read(struct event_store *store, struct db *db,
                              struct text aggregate_type,
                              struct text aggregate_id, int64_t from,
                              size_t limit, struct arena *arena,
                              struct message **messages, size_t *count,
                              struct diag *diag)
{
    size_t table = topic_table_of(&store->topic, aggregate_type);
    const struct db_value params[] = {
        db_text_value(aggregate_type),
        db_text_value(aggregate_id),
        db_integer(from),
        db_integer((int64_t)limit),
    };
    struct reading reading = {.arena = arena, .limit = limit};
    enum status status;

    reading.messages = arena_alloc(arena, limit * sizeof(*reading.messages));
    status = db_rows_each(db, &store->streams[table].read, params, 4, take_row,
                          &reading, diag);
    *messages = reading.messages;
    *count = reading.count;
    return status;
}
