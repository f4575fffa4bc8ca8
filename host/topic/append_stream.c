#include "topic/append_call.h"
#include "topic/event_store_parts.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

#define SHOWN_CHARS 80 /* of a stream's name in a message */

/* Type and id with a NUL between: neither may contain one. */
static struct text stream_key(struct arena *arena,
                              const struct append_event *event)
{
    size_t type_len = event->aggregate_type.len;
    size_t len = type_len + 1 + event->aggregate_id.len;
    char *key = arena_alloc(arena, len);

    memcpy(key, event->aggregate_type.data, type_len);
    key[type_len] = '\0';
    memcpy(key + type_len + 1, event->aggregate_id.data,
           event->aggregate_id.len);
    return (struct text){key, len};
}

/* Runs of events of one stream are common: they need no look-up. */
static bool goes_to(const struct append_stream *stream,
                    const struct append_event *event)
{
    return text_equal(stream->aggregate_id, event->aggregate_id) &&
           text_equal(stream->aggregate_type, event->aggregate_type);
}

static void add_stream(struct append_call *call,
                       const struct append_event *event)
{
    call->streams[call->nstreams++] = (struct append_stream){
        .aggregate_type = event->aggregate_type,
        .aggregate_id = event->aggregate_id,
        .table = topic_table_of(call->topic, event->aggregate_type),
        .partition = hash_partition(event->aggregate_id,
                                    call->topic->partitions),
        .last = -1,
    };
}

static void group_by_stream(struct append_call *call)
{
    struct event_store *store = call->store;
    size_t latest = APPEND_NOWHERE;

    map_clear(&store->scratch_streams);
    call->streams = arena_alloc(&call->topic->scratch,
                                call->nnew * sizeof(*call->streams));
    for (size_t i = 0; i < call->count; i++) {
        const struct append_event *event = &call->events[i];
        bool added;

        if (!append_is_new(&call->items[i]))
            continue;
        if (latest == APPEND_NOWHERE ||
            !goes_to(&call->streams[latest], event)) {
            latest = (size_t)map_put(&store->scratch_streams,
                                     stream_key(&call->topic->scratch, event),
                                     (int64_t)call->nstreams, &added);
            if (added)
                add_stream(call, event);
        }
        call->items[i].stream = latest;
    }
}

static enum status read_rows(struct append_call *call, struct db_rows *rows,
                             const size_t *places, size_t count,
                             struct diag *diag)
{
    enum status status;
    bool more;

    for (;;) {
        int64_t place;

        status = db_next(rows, &more, diag);
        if (status != STATUS_OK || !more)
            return status;
        place = db_get_int64(rows, 0);
        if (place < 0 || (uint64_t)place >= count || db_is_null(rows, 1))
            continue;
        call->streams[places[place]].last = db_get_int64(rows, 1);
    }
}

/* One statement for all streams that share the type of stream `first`. */
static enum status read_ends(struct append_call *call, size_t first,
                             struct text *ids, size_t *places,
                             struct diag *diag)
{
    struct text type = call->streams[first].aggregate_type;
    size_t table = call->streams[first].table;
    struct db_value params[2];
    struct db_rows *rows;
    size_t count = 0;
    enum status status;

    for (size_t i = first; i < call->nstreams; i++) {
        struct append_stream *stream = &call->streams[i];

        if (stream->read || !text_equal(stream->aggregate_type, type))
            continue;
        stream->read = true;
        ids[count] = stream->aggregate_id;
        places[count++] = i;
    }
    params[0] = db_text_value(type);
    params[1] = db_texts(ids, count);
    status = db_query(call->db, &call->store->streams[table].sql, params, 2,
                      &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = read_rows(call, rows, places, count, diag);
    db_rows_close(rows);
    return status;
}

static enum status read_all_ends(struct append_call *call, struct diag *diag)
{
    struct arena *arena = &call->topic->scratch;
    struct text *ids = arena_alloc(arena, call->nstreams * sizeof(*ids));
    size_t *places = arena_alloc(arena, call->nstreams * sizeof(*places));

    for (size_t i = 0; i < call->nstreams; i++) {
        enum status status;

        if (call->streams[i].read)
            continue;
        status = read_ends(call, i, ids, places, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status refuse(struct append_call *call, size_t index,
                          const struct append_stream *stream, struct diag *diag)
{
    const struct append_event *event = &call->events[index];
    struct text type = stream->aggregate_type;
    struct text id = stream->aggregate_id;
    char found[64] = "it has no event yet";
    char expected[64] = "no event";

    *call->bad = index;
    type.len = text_utf8_prefix_chars(type, SHOWN_CHARS);
    id.len = text_utf8_prefix_chars(id, SHOWN_CHARS);
    if (stream->last >= 0)
        snprintf(found, sizeof(found),
                 "its last event has sequence number %" PRId64, stream->last);
    if (event->expect == APPEND_AT)
        snprintf(expected, sizeof(expected), "sequence number %" PRId64,
                 event->expected);
    return diag_set(diag, STATUS_REFUSED,
                    "stream " TEXT_FORMAT " \"" TEXT_FORMAT
                    "\": expected %s, but %s; read the stream again and "
                    "decide anew",
                    TEXT_ARGS(type), TEXT_ARGS(id), expected, found);
}

static bool as_expected(const struct append_event *event,
                        const struct append_stream *stream)
{
    switch (event->expect) {
    case APPEND_ANY:
        return true;
    case APPEND_NONE:
        return stream->last < 0;
    case APPEND_AT:
        return stream->last == event->expected;
    }
    return false;
}

enum status append_stream_number(struct append_call *call, struct diag *diag)
{
    enum status status;

    group_by_stream(call);
    status = read_all_ends(call, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < call->count; i++) {
        struct append_stream *stream;

        if (!append_is_new(&call->items[i]))
            continue;
        stream = &call->streams[call->items[i].stream];
        if (!as_expected(&call->events[i], stream))
            return refuse(call, i, stream, diag);
        if (stream->last == INT64_MAX) {
            *call->bad = i;
            return diag_set(diag, STATUS_REFUSED,
                            "the stream has no sequence number left");
        }
        call->results[i].sequence = ++stream->last;
    }
    return STATUS_OK;
}
