#include "model/projection_topic.h"

#include "base/memory.h"

#include <stdlib.h>

struct projection_topic_entry {
    size_t unit;
    size_t place; /* among all, as they were added */
    struct read_model_message message;
};

void projection_topic_init(struct projection_topic *topic,
                           const struct declaration *declaration, int cascade,
                           const struct read_model_writer *writer)
{
    *topic = (struct projection_topic){
        .every = declaration->every_change,
        .cascade = cascade,
        .writer = *writer,
    };
}

void projection_topic_free(struct projection_topic *topic)
{
    mem_free(topic->entries);
}

void projection_topic_begin(struct projection_topic *topic)
{
    topic->count = 0;
}

enum status projection_topic_check(const struct projection_topic *topic,
                                   const struct message *message,
                                   struct failure *failure)
{
    if (message->cascade_depth < topic->cascade)
        return STATUS_OK;
    failure_set(failure, true, "cascade",
                "this change has come through %d projections, and "
                "limits.cascade allows %d: they read each other's read models "
                "in a circle, or the chain is longer than that",
                message->cascade_depth, topic->cascade);
    return STATUS_FAILED;
}

size_t projection_topic_add(struct projection_topic *topic, size_t unit,
                            const struct message *message, struct uuid id,
                            struct text key, struct text state, bool deleted)
{
    if (topic->count == topic->capacity) {
        topic->capacity = topic->capacity == 0 ? 512 : 2 * topic->capacity;
        topic->entries = mem_grow(topic->entries, topic->capacity,
                                  sizeof(*topic->entries));
    }
    topic->entries[topic->count] = (struct projection_topic_entry){
        .unit = unit,
        .place = topic->count,
        .message =
            {
                .id = id,
                .key = key,
                .state = state,
                .metadata = message != NULL ? message->metadata : TEXT_NONE,
                .cascade_depth = message != NULL ? message->cascade_depth + 1
                                                 : 1,
                .deleted = deleted,
            },
    };
    return topic->count++;
}

struct uuid projection_topic_id(const struct projection_topic *topic,
                                size_t entry)
{
    return topic->entries[entry].message.id;
}

struct text projection_topic_state(const struct projection_topic *topic,
                                   size_t entry)
{
    return topic->entries[entry].message.state;
}

static int by_unit(const void *a, const void *b)
{
    const struct projection_topic_entry *left = a, *right = b;

    if (left->unit != right->unit)
        return left->unit < right->unit ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

enum status projection_topic_send(struct projection_topic *topic, struct db *db,
                                  int64_t now_us, struct arena *arena,
                                  struct diag *diag)
{
    size_t count = topic->count;
    struct read_model_message *messages;

    topic->count = 0;
    if (count == 0)
        return STATUS_OK;
    qsort(topic->entries, count, sizeof(*topic->entries), by_unit);
    messages = arena_alloc(arena, count * sizeof(*messages));
    for (size_t i = 0; i < count; i++)
        messages[i] = topic->entries[i].message;
    return read_model_append(&topic->writer, db, now_us, messages, count, arena,
                             diag);
}
