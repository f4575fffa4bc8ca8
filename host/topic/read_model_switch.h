/*
 * Read-model switch -- whether the topic of a projection is on, and how far it
 * was filled with the read models that were there before (model/
 * read_model_fill.h). Once on, a topic stays on until an operator switches it
 * off (topic/read_model_off.h).
 */
#ifndef HOST_TOPIC_READ_MODEL_SWITCH_H
#define HOST_TOPIC_READ_MODEL_SWITCH_H

#include "base/arena.h"
#include "db/catalog.h"
#include "db/db.h"

struct read_model_switch {
    bool on;
    bool filled;         /* all that was there is in it */
    struct text through; /* the last key that was filled in, or NULL data */
};

/** Bytes live in `arena`. */
enum status read_model_switch_read(struct db *db, const struct catalog *catalog,
                                   const char *projection, struct arena *arena,
                                   struct read_model_switch *state,
                                   struct diag *diag) MUST_CHECK;

/** Whether a topic is on; nobody switches it off until the transaction ends. */
enum status read_model_switch_hold(struct db *db, const struct catalog *catalog,
                                   const char *projection, bool *on,
                                   struct diag *diag) MUST_CHECK;

/**
 * Switches a topic on, in a transaction of its own: every batch of the
 * projection that commits after it appends to the topic. *switched is false
 * when it was on already. CONFLICT: try again, with read_model_off_empty before
 * it, for a topic that was switched off and holds messages still.
 */
enum status read_model_switch_on(struct db *db, const struct catalog *catalog,
                                 const char *projection, int64_t now_us,
                                 bool *switched, struct diag *diag) MUST_CHECK;

/** Keeps every batch of the projection out until the transaction ends. */
enum status read_model_switch_lock(struct db *db, const struct catalog *catalog,
                                   const char *projection,
                                   struct diag *diag) MUST_CHECK;

/** Queues how far the topic is filled now (`last`: to its end at `now_us`); the
 * commit is a CONFLICT when somebody else has filled it from `before`. */
enum status read_model_switch_filled(struct db *db,
                                     const struct catalog *catalog,
                                     const char *projection, struct text before,
                                     struct text through, bool last,
                                     int64_t now_us,
                                     struct diag *diag) MUST_CHECK;

/** Receives the name of a projection; valid during the call. */
typedef void (*read_model_unfilled_fn)(void *arg, struct text projection);

/** The projections whose topics lack read models from before. */
enum status read_model_switch_unfilled(struct db *db,
                                       const struct catalog *catalog,
                                       read_model_unfilled_fn fn, void *arg,
                                       struct diag *diag) MUST_CHECK;

/** Moves the positions of topics past what is stored of them, where they are
 * behind it (a table or sequence that was made anew), outside of a transaction.
 * Of the topic of a projection, where each has a counter; of all, where one
 * sequence numbers them. */
enum status read_model_positions_mend(struct db *db,
                                      const struct catalog *catalog,
                                      const char *projection,
                                      struct diag *diag) MUST_CHECK;

#endif
