/*
 * Command results -- what became of each command that brought an id, rejected
 * ones and those without events included, so that a repeated command gives the
 * first outcome instead of deciding anew (design 5, Aggregates).
 */
#ifndef HOST_MODEL_COMMAND_RESULTS_H
#define HOST_MODEL_COMMAND_RESULTS_H

#include "base/arena.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

/** A command as its result is kept. Texts are borrowed; those that were read
 * live in the arena. */
struct command_result {
    struct uuid id;
    struct text aggregate_type;
    struct text aggregate_id;
    struct text name;
    struct text outcome; /* JSON; NULL data: nothing is known of the id */
};

/** Looks the id up and fills the rest. */
enum status command_result_read(struct db *db, const struct catalog *catalog,
                                struct arena *arena,
                                struct command_result *result,
                                struct diag *diag) MUST_CHECK;

/** Queues a result; UNIQUE when the queue is sent: the same command was done
 * at the same time. `arena` holds what is queued. */
enum status command_result_write(struct db *db, const struct names *names,
                                 const struct command_result *result,
                                 int64_t now_us, struct arena *arena,
                                 struct diag *diag) MUST_CHECK;

/** Deletes up to `limit` results that are older than `before_us`; how many it
 * were (may be NULL). */
enum status command_results_expire(struct db *db, const struct catalog *catalog,
                                   int64_t before_us, int64_t limit,
                                   int64_t *deleted,
                                   struct diag *diag) MUST_CHECK;

#endif
