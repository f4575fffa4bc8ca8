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
#include "model/outgoing.h"
#include "schema/names.h"

/** What a transaction stages with. */
struct outbox {
    struct db *db;
    const struct catalog *catalog;
    const struct names *names;
    struct uuid_source *ids;
};

/**
 * Queues the messages, in order, as pending from `now_us` (microseconds since
 * 1970, UTC). Those with an id of their own, and those to be sent again, cost
 * one query for all of them.
 * Statuses and *bad: as of struct outgoing_stage. `arena` holds what is queued.
 */
enum status outbox_stage(const struct outbox *outbox,
                         const struct outgoing *messages, size_t count,
                         int64_t now_us, struct arena *arena, size_t *bad,
                         struct diag *diag) MUST_CHECK;

/** The same for the folders below; the outbox is borrowed. */
struct outgoing_stage outbox_outgoing(struct outbox *outbox);

#endif
