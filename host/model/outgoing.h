/*
 * Outgoing -- a message to publish, as a handler or a step of a saga causes it,
 * and the way to the one who stages it: the outbox lies above this folder, so
 * run/ hands it down as a function.
 */
#ifndef HOST_MODEL_OUTGOING_H
#define HOST_MODEL_OUTGOING_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"
#include "base/uuid.h"
#include "topic/message.h"

/** Characters of a route, a type, an ordering key. */
#define OUTGOING_TEXT_MAX 255

/** Borrowed until the queue was sent. */
struct outgoing {
    struct text route; /* the publisher's name */
    struct text type;
    struct text payload; /* JSON, kept byte for byte */
    struct uuid event_id;
    bool own_id; /* the caller may have staged it before under this id */
    /** Send again, under the same id, what was staged and has been published;
     * what still waits stays as it is. What is not there any more is staged
     * anew from the other fields; without a payload it is refused. */
    bool again;
    /* Optional ones: NULL. */
    struct text ordering_key; /* messages of one key go out in order */
    const struct uuid *tenant_id;
    const struct uuid *execution_id;
    const struct uuid *correlation_id; /* of the first message of the chain */
    const struct uuid *causation_id;   /* of the message that caused it */
    struct text metadata;              /* a JSON object */
    struct text traceparent;
    int64_t occurred_at;
};

/** LIMIT: a field is empty or too long. */
enum status outgoing_check(const struct outgoing *m,
                           struct diag *diag) MUST_CHECK;

/**
 * Queues the messages, in order, in the open transaction: a constant number of
 * statements, whatever `count` is. The same route and id with the same content
 * is one message.
 * LIMIT: a field is empty or too long; REFUSED: an id has other content, or
 * what is to be sent again is not there; *bad is the place of the message.
 */
struct outgoing_stage {
    enum status (*stage)(void *self, const struct outgoing *messages,
                         size_t count, int64_t now_us, struct arena *arena,
                         size_t *bad, struct diag *diag);
    void *self;
};

/** The correlation id of a message, appended: what its metadata say, or its
 * own id, which began the chain then. */
void outgoing_correlation(const struct message *cause, struct buffer *out);

/** The saga that publishes. */
struct outgoing_saga {
    const char *type;
    struct text id;
};

/** Fills correlation_id, causation_id and metadata from the message that is
 * behind it all and the saga, which may be NULL. A correlation id that is no
 * UUID goes into the metadata instead. Memory comes from `arena`. */
void outgoing_trace(struct outgoing *outgoing, const struct message *cause,
                    const struct outgoing_saga *saga, struct arena *arena);

/** The metadata, a JSON object, of what a message brings about later: it goes
 * on with the message's chain. */
struct text outgoing_chain(const struct message *cause,
                           const struct outgoing_saga *saga,
                           struct arena *arena);

#endif
