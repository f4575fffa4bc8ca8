/*
 * Deadline -- rows of SAGA_DEADLINES as the consumer of a saga fires them: what
 * is due in the partitions it holds, when the next one is, and what becomes of
 * those that failed. What handlers set and cancel is model/saga_deadline.h;
 * when to fire is decided in consumer/fire.c.
 *
 * Times are the database's clock plus the clock_offset (deadline_clock): hosts
 * whose clocks differ, or step, fire at the same moment.
 */
#ifndef HOST_CONSUMER_DEADLINE_H
#define HOST_CONSUMER_DEADLINE_H

#include "base/arena.h"
#include "base/clock.h"
#include "consumer/failure.h"
#include "db/catalog.h"
#include "db/db.h"
#include "partition/leases.h"
#include "schema/names.h"
#include "topic/message.h"

/** Begins the names of the host's own deadlines, which no script may set and no
 * operator delete: without its row a saga would wait for ever. The statements
 * deadlines_delete and deadlines_count_host have it, too. */
#define DEADLINE_OF_HOST "moontide:"

enum deadline_status {
    DEADLINE_PENDING,     /* not fired yet */
    DEADLINE_FAILED,      /* has failed, tried again at next_at */
    DEADLINE_DEAD_LETTER, /* waits for an operator */
};

/** "PENDING", "FAILED", "DEAD_LETTER". */
const char *deadline_status_word(enum deadline_status status);
/** False when it is none of the words. */
bool deadline_status_parse(struct text word, enum deadline_status *status);

/** One row as read to be fired. Slices live in the arena given. */
struct deadline {
    struct uuid id;       /* of this setting: setting it again makes another */
    struct uuid instance; /* the saga's row; another one is not its saga */
    struct text saga_id;
    struct text name;
    int partition;
    int64_t due_at;
    int64_t next_at;     /* due_at, or when it is tried again */
    int attempts;        /* made so far, all of which failed */
    struct text payload; /* JSON; NULL data: set without one */
    struct text reason;  /* of the last failure; NULL data: none */
    /** What handlers, limits and effects see: id is the deadline's and not a
     * message's, position 0, type the name, occurred_at when it is due, payload
     * ("null" without one) and metadata those it was set with. */
    struct message message;
};

/** The clock that due times are judged by: the database's, which is asked at
 * most every few seconds, plus the offset. */
enum status deadline_clock(struct db *db, const struct clock *clock,
                           int64_t *now_us, struct diag *diag) MUST_CHECK;

/** Reads what is due at `now_us` in the partitions that are held, oldest first:
 * up to `limit` rows and, beyond the first, about `byte_limit` bytes. *whole:
 * there are no more. */
enum status deadline_due(struct db *db, const struct catalog *catalog,
                         const char *saga_type, const struct leases *leases,
                         int64_t now_us, size_t limit, size_t byte_limit,
                         struct arena *arena, struct deadline **rows,
                         size_t *count, bool *whole,
                         struct diag *diag) MUST_CHECK;

/** When the first one of these partitions is due, INT64_MAX for none. */
enum status deadline_next(struct db *db, const struct catalog *catalog,
                          const char *saga_type, const struct leases *leases,
                          int64_t *next_us, struct diag *diag) MUST_CHECK;

/** Told for each type that has any: its place in the list, and when the first
 * of them is due, in whatever partition. */
typedef void (*deadline_first_fn)(void *arg, size_t type, int64_t due_at);
/** One statement for all saga types of a host. */
enum status deadline_firsts(struct db *db, const struct catalog *catalog,
                            const struct text *types, size_t count,
                            deadline_first_fn fn, void *arg,
                            struct diag *diag) MUST_CHECK;

/** What becomes of a deadline that failed. */
struct deadline_failed {
    const struct deadline *deadline;
    enum deadline_status status;
    int attempts;
    int64_t next_at;               /* DEAD_LETTER: any */
    const struct failure *failure; /* NULL: none to tell of */
};

/** Queues that, in one statement. CONFLICT when one of the rows is gone: it was
 * deleted or set again meanwhile. `arena` holds them until they are sent. */
enum status deadline_fail(struct db *db, const struct names *names,
                          const struct deadline_failed *rows, size_t count,
                          struct arena *arena, struct diag *diag) MUST_CHECK;

#endif
