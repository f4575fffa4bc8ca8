/*
 * Append call -- the state of one append to a topic while it runs, and the
 * steps that an append to the event store and one to the capture topic share.
 * All memory is the topic's scratch arena. Nothing outside this folder includes
 * it.
 */
#ifndef HOST_TOPIC_APPEND_CALL_H
#define HOST_TOPIC_APPEND_CALL_H

#include "topic/append.h"
#include "topic/topic_parts.h"

#define APPEND_NOWHERE SIZE_MAX

/** One stream that new events go to. */
struct append_stream {
    struct text aggregate_type;
    struct text aggregate_id;
    size_t table;
    int partition;
    int64_t last; /* sequence number of its last event, -1: none */
    bool read;    /* `last` was read from the table */
};

/** What happens to one event of the call. */
struct append_item {
    bool stored;    /* was there before the call; its result is filled */
    size_t same_as; /* earlier event of the call with this id, or NOWHERE */
    size_t stream;  /* of a new event of the event store */
};

struct append_call {
    struct topic *topic;
    struct event_store *store; /* NULL: the capture topic, without streams */
    struct db *db;
    const struct append_options *options;
    const struct append_event *events;
    size_t count;
    struct append_result *results;
    size_t *bad;
    struct append_item *items; /* one per event */
    struct append_stream *streams;
    size_t nstreams;
    size_t nnew; /* events to write */
};

/**
 * Checks the events, finds those that are there already, and gives the new
 * ones their ids.
 */
enum status append_call_begin(struct append_call *call,
                              struct diag *diag) MUST_CHECK;

/**
 * Gives the new events their positions and writes them; those of the event
 * store have their sequence numbers already.
 */
enum status append_call_write(struct append_call *call,
                              struct diag *diag) MUST_CHECK;

static inline bool append_is_new(const struct append_item *item)
{
    return !item->stored && item->same_as == APPEND_NOWHERE;
}

/** The time that is stored for an event of the call. */
static inline int64_t append_time(const struct append_call *call,
                                  const struct append_event *event)
{
    return event->has_occurred_at ? event->occurred_at : call->options->now_us;
}

/**
 * append_repeat.c: finds the events that are there already, in the tables or
 * earlier in the call, by the ids they brought. Fills the results of those
 * stored. REFUSED when the id stands for other content.
 */
enum status append_repeat_find(struct append_call *call,
                               struct diag *diag) MUST_CHECK;

/**
 * append_stream.c: groups the new events by stream, reads where each stream
 * ends and gives the events their sequence numbers. REFUSED when an expected
 * sequence number differs.
 */
enum status append_stream_number(struct append_call *call,
                                 struct diag *diag) MUST_CHECK;

/** An id in its text form, made in `arena`. */
struct text append_id_text(struct arena *arena, const struct uuid *id);

#endif
