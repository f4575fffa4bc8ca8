/*
 * Outbox -- messages that wait to be published, staged in the transaction of
 * what caused them (design 6). This module never begins or commits.
 *
 * A route and an event id name a message: the same again with the same content
 * changes nothing, with other content it is refused.
 */
#ifndef HOST_OUTBOX_OUTBOX_H
#define HOST_OUTBOX_OUTBOX_H

#include "base/arena.h"
#include "base/uuid.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

/* Characters of a route, a type, an ordering key. */
#define OUTBOX_TEXT_MAX 255

/** Borrowed until the queue was sent. */
struct outbox_message {
    struct text route; /* the publisher's name */
    struct text type;
    struct text payload; /* JSON, kept byte for byte */
    struct uuid event_id;
    bool own_id; /* the caller may have staged it before under this id */
    /* Optional ones: NULL. */
    struct text ordering_key; /* messages of one key go out in order */
    const struct uuid *tenant_id;
    const struct uuid *execution_id;
    const struct uuid *correlation_id; /* of the first message of the chain */
    const struct uuid *causation_id;   /* of the message that caused it */
    struct text traceparent;
    int64_t occurred_at;
};

/** What a transaction stages with. */
struct outbox {
    struct db *db;
    const struct catalog *catalog;
    const struct names *names;
    struct uuid_source *ids;
};

/**
 * Queues the messages, in order, as pending from `now_us` (microseconds since
 * 1970, UTC). Those with an id of their own cost one query for all of them.
 * LIMIT: a route, type or key is empty or too long; REFUSED: the same route
 * and id with other content; *bad is the place of the message.
 * `arena` holds what is queued.
 */
enum status outbox_stage(const struct outbox *outbox,
                         const struct outbox_message *messages, size_t count,
                         int64_t now_us, struct arena *arena, size_t *bad,
                         struct diag *diag) MUST_CHECK;

/** Queues that those of a route which were published go out again, under the
 * same event ids; others stay as they are. */
enum status outbox_resend(const struct outbox *outbox, struct text route,
                          const struct text *event_ids, size_t count,
                          int64_t now_us, struct diag *diag) MUST_CHECK;

#endif
