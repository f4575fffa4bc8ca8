/*
 * Registry -- the row of a consumer in CONSUMERS: its id, state and epoch.
 * Every change of state is one write of that row.
 */
#ifndef HOST_CONSUMER_REGISTRY_H
#define HOST_CONSUMER_REGISTRY_H

#include "base/uuid.h"
#include "consumer/fingerprint.h"
#include "db/catalog.h"
#include "db/db.h"

/** States as stored; RUNNING is NULL. */
enum consumer_state {
    CONSUMER_RUNNING,
    CONSUMER_PAUSED,
    CONSUMER_HALTED,
    CONSUMER_REBUILDING,
};

enum halt_reason {
    HALT_NONE,
    HALT_MISSING_HISTORY,
    HALT_APPLY_ERROR,
    HALT_DECLARATION_CHANGED,
};

#define CONSUMER_TYPE_PROJECTION "projection"
#define CONSUMER_TYPE_LISTENER   "listener"
#define CONSUMER_TYPE_SAGA       "saga"

/** Names one consumer. Strings are borrowed. */
struct consumer_name {
    const char *type;
    const char *name;
};

/* The column holds 255 characters of any origin. */
#define CONSUMER_FINGERPRINT_SIZE (4 * FINGERPRINT_MAX + 1)

struct consumer_row {
    bool exists;
    char id[UUID_TEXT_LEN + 1];
    enum consumer_state state;
    enum halt_reason halt_reason;
    int64_t epoch; /* 0: never rebuilt (NULL) */
    int64_t state_since;
    bool has_fingerprint; /* false: NULL */
    char fingerprint[CONSUMER_FINGERPRINT_SIZE];
};

const char *consumer_state_word(enum consumer_state state); /* "RUNNING" ... */
const char *halt_reason_word(enum halt_reason reason);      /* "" for NONE */

/** Takes stored words apart; NULL data stands for SQL NULL. PERMANENT for a
 * word that this version does not know. */
enum status consumer_state_parse(struct text state, struct text reason,
                                 enum consumer_state *state_out,
                                 enum halt_reason *reason_out,
                                 struct diag *diag) MUST_CHECK;

/** Reads the row; row->exists is false when there is none. */
enum status registry_read(struct db *db, const struct catalog *catalog,
                          const struct consumer_name *name,
                          struct consumer_row *row,
                          struct diag *diag) MUST_CHECK;

/** Receives one consumer's row; valid during the call. */
typedef void (*registry_row_fn)(void *arg, const struct consumer_row *row);

/** Reads the rows of all consumers, in one statement. */
enum status registry_states(struct db *db, const struct catalog *catalog,
                            registry_row_fn fn, void *arg,
                            struct diag *diag) MUST_CHECK;

/**
 * Makes row and checkpoints (all partitions, position NULL) where they are
 * missing, in the caller's transaction. REFUSED when the database would not
 * tell the name from an existing one.
 */
enum status registry_subscribe(struct db *db, const struct catalog *catalog,
                               const struct consumer_name *name,
                               const char *source, int partitions,
                               struct uuid_source *ids, int64_t now_us,
                               struct consumer_row *row,
                               struct diag *diag) MUST_CHECK;

/** What is stored of the declaration; TEXT_NONE: nothing. */
struct text registry_fingerprint(const struct consumer_row *row);

/**
 * Queues that the declaration is what the consumer goes by from now on: as it
 * is (a first start, or taken over by an operator), or by a rebuild, in whose
 * transaction it belongs. The commit is a CONFLICT when the row does not hold
 * what was read.
 */
enum status registry_fingerprint_accept(struct db *db,
                                        const struct catalog *catalog,
                                        struct consumer_row *row,
                                        const struct fingerprint *declared,
                                        struct diag *diag) MUST_CHECK;
enum status registry_fingerprint_rebuild(struct db *db,
                                         const struct catalog *catalog,
                                         struct consumer_row *row,
                                         const struct fingerprint *declared,
                                         struct diag *diag) MUST_CHECK;

/** Queues that the consumer was reset for a rebuild: it runs, under the new
 * epoch. */
enum status registry_rebuilt(struct db *db, const struct catalog *catalog,
                             const struct consumer_row *row, int64_t epoch,
                             int64_t now_us, struct diag *diag) MUST_CHECK;

/** Queues the change of state and reason. */
enum status registry_set_state(struct db *db, const struct catalog *catalog,
                               const struct consumer_row *row,
                               enum consumer_state state,
                               enum halt_reason reason, int64_t now_us,
                               struct diag *diag) MUST_CHECK;

#endif
