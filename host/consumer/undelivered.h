/*
 * Undelivered messages -- what a consumer could not apply yet, one row per
 * message and key with a copy of the message, so that the topic may forget
 * it. How a message enters and leaves each status is decided in
 * consumer/apply.c and consumer/retry.c.
 */
#ifndef HOST_CONSUMER_UNDELIVERED_H
#define HOST_CONSUMER_UNDELIVERED_H

#include "base/arena.h"
#include "consumer/failure.h"
#include "consumer/undelivered_keys.h"
#include "db/catalog.h"
#include "db/db.h"
#include "partition/leases.h"
#include "schema/names.h"
#include "topic/message.h"

enum undelivered_status {
    UNDELIVERED_FAILED,          /* retried at next_retry_at */
    UNDELIVERED_WAITING,         /* behind an earlier message of its key */
    UNDELIVERED_HALTED,          /* it halted the consumer */
    UNDELIVERED_DEAD_LETTER_KEY, /* holds its key until an operator acts */
    UNDELIVERED_DEAD_LETTER,     /* holds nothing */
};

const char *undelivered_status_word(enum undelivered_status status);

/** One row to write. Borrowed during the call. */
struct undelivered_entry {
    const struct message *message;
    struct text key; /* NULL data: none, or it could not be told */
    int partition;
    enum undelivered_status status;
    int failure_count;
    const struct failure *failure; /* NULL: has not failed itself */
    int64_t next_retry_at;         /* FAILED: when, 0: at once */
    bool unresolved;
};

/** One row as read for a retry. Slices live in the arena given. */
struct undelivered_row {
    char id[UUID_TEXT_LEN + 1];
    struct message message;
    bool has_copy;                /* false: the retry applies nothing */
    const struct failure *damage; /* not NULL: the copy cannot be read */
    struct text key;
    int partition;
    enum undelivered_status status;
    int failure_count;
    struct text reason; /* of its last failure; NULL data: it never failed */
    bool unresolved;
    bool counted; /* the count has the attempt that is about to be made */
    bool holds;   /* it is not due itself, and holds what lies behind it */
};

/** A row of a message that a page may meet although it is recorded: an attempt
 * of it was counted before its partition had come so far. Slices live in the
 * arena given. */
struct undelivered_recorded {
    char id[UUID_TEXT_LEN + 1];
    int64_t position;
    int partition;
    struct text key;
    enum undelivered_status status;
    int failure_count;
    struct text reason;    /* NULL data: it never failed */
    int64_t next_retry_at; /* 0: none */
    bool unresolved;
};

/** Reads the rows of messages in (after, upto], in position order. */
enum status undelivered_recorded(struct db *db, const struct catalog *catalog,
                                 const char *consumer_id, const char *source,
                                 int64_t after, int64_t upto,
                                 struct arena *arena,
                                 struct undelivered_recorded **rows,
                                 size_t *count, struct diag *diag) MUST_CHECK;

/** Reads the rows of messages at these positions whose keys are not known, in
 * position order. */
enum status undelivered_keyless(struct db *db, const struct catalog *catalog,
                                const char *consumer_id, const char *source,
                                const int64_t *positions, size_t npositions,
                                struct arena *arena,
                                struct undelivered_recorded **rows,
                                size_t *count, struct diag *diag) MUST_CHECK;

/** What a row with this status does to its key. */
enum key_hold undelivered_hold(enum undelivered_status status);

/** Queues the insert of the rows. `arena` holds them until they are sent. */
enum status undelivered_record(struct db *db, const struct names *names,
                               const char *consumer_id, const char *source,
                               const struct undelivered_entry *entries,
                               size_t count, struct uuid_source *ids,
                               int64_t now_us, struct arena *arena,
                               struct diag *diag) MUST_CHECK;

/** Reads rows of the partitions that are held that may be tried now: of each
 * key, all rows but DEAD_LETTER up to the first that waits for an operator, a
 * start or a later time, in position order; up to `limit` rows and, beyond the
 * first row, about `byte_limit` bytes of copies. *whole: there are no more.
 * *behind: some of these keys are held further on. */
enum status undelivered_due(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            const struct leases *leases, int64_t now_us,
                            size_t limit, size_t byte_limit,
                            struct arena *arena, struct undelivered_row **rows,
                            size_t *count, bool *whole, bool *behind,
                            struct diag *diag) MUST_CHECK;

/** When the next of these is due that is not due yet: INT64_MAX for none. */
enum status undelivered_next(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, const char *source,
                             const struct leases *leases, int64_t *next_us,
                             struct diag *diag) MUST_CHECK;

/** Queues the delete of rows that are settled, in one statement. */
enum status undelivered_delete(struct db *db, const struct catalog *catalog,
                               const struct text *ids, size_t count,
                               struct diag *diag) MUST_CHECK;

/** A row whose retry failed, and what became of it. */
struct undelivered_failed {
    const char *id;
    const struct undelivered_entry *entry;
};

/** Queues status, count, time of the next retry and failure of such rows, in
 * one statement. CONFLICT when one of them is gone. `arena` holds them until
 * they are sent. */
enum status undelivered_fail(struct db *db, const struct names *names,
                             const struct undelivered_failed *rows,
                             size_t count, struct arena *arena,
                             struct diag *diag) MUST_CHECK;

/** Queues that what waits behind the dead letters of keys lies dead, too. */
enum status undelivered_bury(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, const char *source,
                             const struct text *keys, size_t count,
                             struct diag *diag) MUST_CHECK;

/** Queues a fresh budget: HALTED rows become FAILED, due at once. */
enum status undelivered_revive(struct db *db, const struct catalog *catalog,
                               const char *consumer_id,
                               struct diag *diag) MUST_CHECK;

#endif
