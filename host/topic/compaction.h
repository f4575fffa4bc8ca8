/*
 * Compaction -- deletes what the topics of read models need not keep: messages
 * that a newer one of their key supersedes, and tombstones that everybody has
 * passed. In small batches, each a short transaction of its own, along indexes
 * only. It does not wait for consumers but for tombstones, and never moves a
 * topic's start: whoever reads behind it finds the latest message of each key,
 * and has missed nothing.
 *
 * TOPIC_COMPACTION says how far a topic is compacted: among the messages up to
 * there none supersedes another. It only rises.
 */
#ifndef HOST_TOPIC_COMPACTION_H
#define HOST_TOPIC_COMPACTION_H

#include "base/buffer.h"
#include "db/catalog.h"
#include "db/db.h"

#define COMPACTION_NEVER INT64_C(-1)

/** One topic in work. Starts as all zero; compaction_free. */
struct compaction {
    struct buffer topic;  /* as its messages have it: the projection's name */
    struct buffer source; /* as consumers name it, "read-model:..." */
    int64_t through;      /* compacted so far; COMPACTION_NEVER: it never was */
    int64_t reached;      /* looked at so far, beyond it */
    int64_t mark;         /* readable up to here */
    int64_t swept;        /* up to here no tombstone is left that could go */
};

struct compaction_policy {
    /* Only what was superseded before this, by the time of the newer message;
     * INT64_MAX: all. */
    int64_t before_us;
    /* Tombstones older than this go; INT64_MIN: none does. */
    int64_t tombstones_us;
    size_t messages; /* of one batch */
};

struct compaction_report {
    int64_t passed;  /* messages looked at */
    int64_t deleted; /* messages deleted */
    int64_t work_us; /* it took so long, without the commit */
    int64_t cost_us; /* ... and with it; other writers were waited for before */
    bool more;       /* another batch is due at once */
};

/** The consumer that keeps tombstones back. */
struct compaction_holder {
    bool found; /* someone is subscribed */
    int64_t position;
    struct buffer type, name;
};

/** The topic with messages that comes after compaction->topic by name, or the
 * first. *found is false when there is none. */
enum status compaction_next(struct db *db, const struct catalog *catalog,
                            struct compaction *compaction, bool *found,
                            struct diag *diag) MUST_CHECK;

/** One batch of superseded messages. CONFLICT: another host compacts the topic;
 * nothing was done. */
enum status compaction_step(struct db *db, const struct catalog *catalog,
                            const struct compaction_policy *policy,
                            struct compaction *compaction,
                            struct compaction_report *report,
                            struct diag *diag) MUST_CHECK;

/** One batch of tombstones, behind compaction->swept, which moves on: up to
 * where the topic is compacted and every subscribed consumer stands, and to the
 * first that is too young. */
enum status compaction_sweep(struct db *db, const struct catalog *catalog,
                             const struct compaction_policy *policy,
                             struct compaction *compaction,
                             struct compaction_report *report,
                             struct diag *diag) MUST_CHECK;

/** Who stands lowest of the consumers of a topic ("read-model:..."). */
enum status compaction_slowest(struct db *db, const struct catalog *catalog,
                               struct text source,
                               struct compaction_holder *holder,
                               struct diag *diag) MUST_CHECK;
void compaction_holder_free(struct compaction_holder *holder);

/** When the first readable message occurred that the topic is not compacted
 * over; 0: there is none. */
enum status compaction_waiting(struct db *db, const struct catalog *catalog,
                               const struct compaction *compaction,
                               int64_t *since_us, struct diag *diag) MUST_CHECK;

void compaction_free(struct compaction *compaction);

#endif
