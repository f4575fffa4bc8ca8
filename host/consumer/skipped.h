/*
 * Skipped messages -- those a consumer passes over for good, so that no
 * instance meets them again (design 14, rules 10 and 11).
 */
#ifndef HOST_CONSUMER_SKIPPED_H
#define HOST_CONSUMER_SKIPPED_H

#include "base/arena.h"
#include "base/map.h"
#include "consumer/failure.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"
#include "topic/message.h"

/** The skips of one consumer and source within a range of positions. */
struct skips {
    struct arena arena;
    struct map entries; /* "position:key", or "position" for every key */
};

/** One skip to record. */
struct skip {
    int partition;
    int64_t position;
    struct text key; /* NULL data: none */
    bool every_key;  /* for all keys of the message */
    /* for the log, where a policy decided it; else NULL */
    const struct message *message;
    const struct failure *failure;
};

/** Queues the insert of a skip, in the caller's transaction. Recorded twice
 * it is one row: its id comes from consumer, source, partition, position and
 * key. */
enum status skips_record(struct db *db, const struct catalog *catalog,
                         const char *consumer_id, const char *source,
                         const struct skip *skip, struct diag *diag) MUST_CHECK;

/** Queues the skips of one consumer and source that are not recorded yet, in a
 * few statements. Nobody else may record some of them meanwhile: their
 * checkpoints are locked. `arena` holds them until they are sent. */
enum status skips_record_all(struct db *db, const struct names *names,
                             const char *consumer_id, const char *source,
                             const struct skip *skips, size_t count,
                             struct arena *arena, struct diag *diag) MUST_CHECK;

/** Queues the delete of skips that no partition can meet any more: all have
 * passed `position`, and no undelivered message lies there. */
enum status skips_forget(struct db *db, const struct catalog *catalog,
                         const char *consumer_id, const char *source,
                         int64_t position, struct diag *diag) MUST_CHECK;

enum status skips_read(struct db *db, const struct catalog *catalog,
                       const char *consumer_id, const char *source,
                       int64_t after, int64_t upto, struct skips *skips,
                       struct diag *diag) MUST_CHECK;
/** Whether the message at `position` is skipped for `key` (NULL data: for
 * all its keys). */
bool skips_hold(const struct skips *skips, int64_t position, struct text key);
void skips_clear(struct skips *skips);
void skips_free(struct skips *skips);

#endif
