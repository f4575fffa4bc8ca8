#include "topic/append_call.h"

#include <inttypes.h>
#include <stdio.h>

/* Columns of a looked up row: those of the table without the key. */
#define STORED(column) ((column)-1)

/* The distinct ids that events of the call brought. */
struct brought {
    struct append_call *call;
    struct text *ids; /* text form */
    size_t *events;   /* the first event that brought it */
    size_t count;
};

static enum status refuse(struct append_call *call, size_t event,
                          const char *where, const char *differs,
                          struct diag *diag)
{
    char id[UUID_TEXT_LEN + 1];

    *call->bad = event;
    uuid_format(&call->events[event].id, id);
    return diag_set(diag, STATUS_REFUSED,
                    "event id %s is %s with another %s; give the new event an "
                    "id of its own",
                    id, where, differs);
}

/* The first part of `event` that differs from `was`, NULL when none does. */
static const char *difference(const struct append_event *event,
                              const struct append_event *was)
{
    if (!text_equal(event->aggregate_type, was->aggregate_type))
        return "aggregate_type";
    if (!text_equal(event->aggregate_id, was->aggregate_id))
        return "aggregate_id";
    if (!text_equal(event->key, was->key))
        return "key";
    if (!text_equal(event->type, was->type))
        return "type";
    if (event->revision != was->revision)
        return "revision";
    if (!text_equal(event->payload, was->payload))
        return "payload";
    if (!text_equal(event->metadata, was->metadata))
        return "metadata";
    if (event->has_occurred_at && event->occurred_at != was->occurred_at)
        return "occurred_at";
    return NULL;
}

static enum status on_stored(void *arg, size_t index, struct db_rows *row,
                             struct diag *diag)
{
    struct brought *brought = arg;
    struct append_call *call = brought->call;
    size_t event = brought->events[index];
    struct append_result *result = &call->results[event];
    struct append_event was = {
        .type = db_get_text(row, STORED(TOPIC_TYPE)),
        .revision = (int)db_get_int64(row, STORED(TOPIC_REVISION)),
        .payload = db_get_text(row, STORED(TOPIC_PAYLOAD)),
        .occurred_at = db_get_timestamp(row, STORED(TOPIC_OCCURRED_AT)),
    };
    const char *differs;

    if (!db_is_null(row, STORED(TOPIC_METADATA)))
        was.metadata = db_get_text(row, STORED(TOPIC_METADATA));
    if (call->store != NULL) {
        was.aggregate_type = db_get_text(row, STORED(EVENT_AGGREGATE_TYPE));
        was.aggregate_id = db_get_text(row, STORED(EVENT_AGGREGATE_ID));
        result->sequence = db_get_int64(row, STORED(EVENT_SEQUENCE));
    } else if (!db_is_null(row, STORED(CAPTURE_KEY))) {
        was.key = db_get_text(row, STORED(CAPTURE_KEY));
    }
    result->position = db_get_int64(row, STORED(TOPIC_POSITION));
    result->repeated = true;
    call->items[event].stored = true;
    differs = difference(&call->events[event], &was);
    if (differs != NULL) {
        char where[64];

        snprintf(where, sizeof(where), "stored at position %" PRId64,
                 result->position);
        return refuse(call, event, where, differs, diag);
    }
    return STATUS_OK;
}

/* Within the call the first event with an id is the one that counts. */
static enum status check_earlier(struct append_call *call, size_t event,
                                 size_t earlier, struct diag *diag)
{
    struct append_event was = call->events[earlier];
    const char *differs;

    was.occurred_at = append_time(call, &was);
    differs = difference(&call->events[event], &was);
    if (differs != NULL)
        return refuse(call, event, "used earlier in the same batch", differs,
                      diag);
    call->items[event].same_as = earlier;
    return STATUS_OK;
}

struct text append_id_text(struct arena *arena, const struct uuid *id)
{
    char *text = arena_alloc(arena, UUID_TEXT_LEN + 1);

    uuid_format(id, text);
    return (struct text){text, UUID_TEXT_LEN};
}

static enum status collect(struct append_call *call, struct brought *brought,
                           struct diag *diag)
{
    struct topic *topic = call->topic;

    map_clear(&topic->scratch_ids);
    for (size_t i = 0; i < call->count; i++) {
        struct text key = {(const char *)call->events[i].id.bytes,
                           sizeof(call->events[i].id.bytes)};
        bool added;
        int64_t first;
        enum status status;

        if (!call->events[i].has_id)
            continue;
        first = map_put(&topic->scratch_ids, key, (int64_t)i, &added);
        if (added) {
            brought->ids[brought->count] = append_id_text(&topic->scratch,
                                                          &call->events[i].id);
            brought->events[brought->count++] = i;
            continue;
        }
        status = check_earlier(call, i, (size_t)first, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static bool any_brought(const struct append_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (call->events[i].has_id)
            return true;
    }
    return false;
}

enum status append_repeat_find(struct append_call *call, struct diag *diag)
{
    struct topic *topic = call->topic;
    struct brought brought = {.call = call};
    enum status status;

    if (!any_brought(call))
        return STATUS_OK;
    brought.ids = arena_alloc(&topic->scratch,
                              call->count * sizeof(*brought.ids));
    brought.events = arena_alloc(&topic->scratch,
                                 call->count * sizeof(*brought.events));
    status = collect(call, &brought, diag);
    for (size_t t = 0; t < topic->ntables && status == STATUS_OK; t++)
        status = db_lookup(call->db, &topic->tables[t].rows, brought.ids,
                           brought.count, on_stored, &brought, diag);
    return status;
}
