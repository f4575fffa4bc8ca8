/*
 * Read-model append -- writes messages to the topic of a projection, in the
 * transaction that writes the read models themselves.
 */
#ifndef HOST_TOPIC_READ_MODEL_APPEND_H
#define HOST_TOPIC_READ_MODEL_APPEND_H

#include "base/arena.h"
#include "base/uuid.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

/** One message. Borrowed until the queue was sent. */
struct read_model_message {
    struct uuid id;       /* the message_id of the read model's row */
    struct text key;      /* the read model's */
    struct text state;    /* JSON: after the apply; of a deleted one the last */
    struct text metadata; /* of the message that was applied, or NULL data */
    int cascade_depth;    /* one more than that message's */
    bool deleted;         /* a tombstone */
};

/** What the writer of one projection's topic has at hand; fields are its own.
 */
struct read_model_writer {
    const char *topic; /* name of the projection, borrowed */
    const struct catalog *catalog;
    struct db_table rows;
    int partitions;
    bool notify;
};

/** All is borrowed. `notify`: hosts that wait are told (topic/notify.h). */
void read_model_writer_init(struct read_model_writer *writer,
                            const char *projection, const struct names *names,
                            const struct catalog *catalog, int partitions,
                            bool notify);

/**
 * Queues the messages behind what is queued already, and with them their
 * positions, which are drawn in the order of `messages`: last in a transaction,
 * because where a counter numbers them its row stays locked until the end.
 * There the queue is sent first. Parameters are made in `arena`. The topic must
 * be on.
 */
enum status read_model_append(const struct read_model_writer *writer,
                              struct db *db, int64_t now_us,
                              const struct read_model_message *messages,
                              size_t count, struct arena *arena,
                              struct diag *diag) MUST_CHECK;

#endif
