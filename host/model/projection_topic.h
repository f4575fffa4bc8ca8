/*
 * Projection topic -- what a batch of a keyed projection appends to the topic
 * of its read models: per key the last state, and every delete; with changes =
 * "every" the state after each apply. Collected while the batch runs, sent
 * behind its rows.
 */
#ifndef HOST_MODEL_PROJECTION_TOPIC_H
#define HOST_MODEL_PROJECTION_TOPIC_H

#include "base/arena.h"
#include "base/clock.h"
#include "consumer/failure.h"
#include "model/declaration.h"
#include "topic/message.h"
#include "topic/read_model_append.h"

/** Entry of no batch, and unit of what no message has caused. */
#define PROJECTION_TOPIC_NONE SIZE_MAX

struct projection_topic_entry; /* model/projection_topic.c */

/** Fields are for projection_topic.c, except `on`, which says whether anything
 * is to be collected. */
struct projection_topic {
    bool on;
    bool every;  /* changes = "every" */
    int cascade; /* depth that is allowed: limits.cascade */
    struct read_model_writer writer;
    struct projection_topic_entry *entries; /* of the batch in hand */
    size_t count, capacity;
};

/** `writer` as read_model_writer_init fills it. */
void projection_topic_init(struct projection_topic *topic,
                           const struct declaration *declaration, int cascade,
                           const struct read_model_writer *writer);
void projection_topic_free(struct projection_topic *topic);

/** Forgets what was collected. */
void projection_topic_begin(struct projection_topic *topic);

/** FAILED, for good, when what `message` causes would lie deeper in a chain of
 * projections than limits.cascade allows. */
enum status projection_topic_check(const struct projection_topic *topic,
                                   const struct message *message,
                                   struct failure *failure) MUST_CHECK;

/** Adds what `message` (the batch's unit `unit`, or NULL: none) has made of a
 * read model, and gives its place. Slices must live until the queue was sent.
 */
size_t projection_topic_add(struct projection_topic *topic, size_t unit,
                            const struct message *message, struct uuid id,
                            struct text key, struct text state, bool deleted);

/** Of an entry: its id and its state. */
struct uuid projection_topic_id(const struct projection_topic *topic,
                                size_t entry);
struct text projection_topic_state(const struct projection_topic *topic,
                                   size_t entry);

/** Queues what was collected, in the order of the units. */
enum status projection_topic_send(struct projection_topic *topic, struct db *db,
                                  int64_t now_us, struct arena *arena,
                                  struct diag *diag) MUST_CHECK;

#endif
