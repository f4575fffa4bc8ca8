/*
 * Read-model off -- an operator switches the topic of a projection off again:
 * batches that commit after it append nothing. Its messages are deleted in
 * small batches then; until the last is gone, the topic keeps its row in
 * READ_MODEL_TOPICS, and whoever would switch it on again deletes them first.
 * What came before its end is not told to who reads it next.
 */
#ifndef HOST_TOPIC_READ_MODEL_OFF_H
#define HOST_TOPIC_READ_MODEL_OFF_H

#include "db/catalog.h"
#include "db/db.h"

/** Messages that one batch deletes: batches of the projection may run between
 * two of them. */
#define READ_MODEL_OFF_BATCH 1000

/**
 * Switches a topic off, in a transaction of its own. *switched is false when it
 * was off already. REFUSED: a consumer is subscribed to it, whether it runs or
 * not. CONFLICT: try again.
 */
enum status read_model_switch_off(struct db *db, const struct catalog *catalog,
                                  const char *projection, int64_t now_us,
                                  bool *switched, struct diag *diag) MUST_CHECK;

/** One batch of the messages of a topic that is off, in a transaction of its
 * own; *left is false when there are no more. CONFLICT: try again. */
enum status read_model_off_empty(struct db *db, const struct catalog *catalog,
                                 const char *projection, int64_t *deleted,
                                 bool *left, struct diag *diag) MUST_CHECK;

/** One topic with a row. Texts are valid during the call. */
struct read_model_topic_row {
    struct text projection;
    int64_t on_at;
    bool filled;
    int64_t off_at; /* 0: it is on */
};

typedef void (*read_model_topic_fn)(void *arg,
                                    const struct read_model_topic_row *row);

/** The topics that are on, and those that are being emptied, by name. */
enum status read_model_off_list(struct db *db, const struct catalog *catalog,
                                read_model_topic_fn fn, void *arg,
                                struct diag *diag) MUST_CHECK;

#endif
