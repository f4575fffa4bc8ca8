/*
 * Message -- one immutable record of a topic, as read from it.
 */
#ifndef HOST_TOPIC_MESSAGE_H
#define HOST_TOPIC_MESSAGE_H

#include "base/text.h"
#include "base/uuid.h"

#include <stdint.h>

#define TOPIC_EVENT_STORE   "event-store"
#define TOPIC_EVENT_CAPTURE "event-capture"
/** Before the name of a projection: the topic of its read models. */
#define TOPIC_READ_MODEL "read-model:"

/** Types of the messages in such a topic: the state after an apply, and a
 * tombstone, which has the last state. */
#define READ_MODEL_CHANGED "read-model.Changed"
#define READ_MODEL_DELETED "read-model.Deleted"

/** Limits of the columns, in characters. */
#define MESSAGE_KEY_MAX  255
#define MESSAGE_TYPE_MAX 255

#define MESSAGE_NO_SEQUENCE INT64_C(-1)

/** Slices live in the arena of the page (or the undelivered copy). */
struct message {
    int64_t position;
    struct uuid id;
    struct text key; /* event store: the aggregate id; elsewhere NULL data for
                        a message without one */
    int partition;   /* of the key, or of the id where there is none */
    struct text type;
    int revision;
    struct text payload;  /* JSON, byte for byte */
    struct text metadata; /* JSON, or NULL data */
    int64_t occurred_at;  /* microseconds, UTC */
    /* event store only; NULL data and MESSAGE_NO_SEQUENCE elsewhere */
    struct text aggregate_type;
    struct text aggregate_id;
    int64_t sequence; /* from 0 within its stream */
    /* Applies of a chain of read models that led to it; 0: none, an event. */
    int cascade_depth;
};

#endif
