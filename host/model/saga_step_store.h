/*
 * Saga step store -- the rows of SAGA_STEPS, read and written in bulk. What a
 * row says and what follows from it is model/saga_steps.h's business.
 */
#ifndef HOST_MODEL_SAGA_STEP_STORE_H
#define HOST_MODEL_SAGA_STEP_STORE_H

#include "db/catalog.h"
#include "db/db.h"
#include "model/saga_steps.h"
#include "schema/names.h"

/** The statements of one saga type; fields are for saga_step_store.c. */
struct saga_step_store {
    struct text saga_type;
    struct db_table insert, update;
    const struct db_sql *load;
};

/** One instance's steps, and whose they are. */
struct saga_step_owner {
    struct text saga_id;
    struct saga_steps *steps;
};

/** All is borrowed and must outlive it. */
void saga_step_store_init(struct saga_step_store *store, const char *saga_type,
                          const struct names *names,
                          const struct catalog *catalog);

/** Fills the rows of `count` distinct instances, whose steps are empty but for
 * rules, instance and arena. A constant number of round trips. REFUSED: a row
 * awaits what is not declared. */
enum status saga_step_store_load(const struct saga_step_store *store,
                                 struct db *db,
                                 const struct saga_step_owner *owners,
                                 size_t count, struct arena *arena,
                                 struct diag *diag) MUST_CHECK;

/** Fills the rows of one saga for somebody who looks at them: `steps` is empty
 * but for the arena, and what is declared does not matter. */
enum status saga_step_store_read(struct db *db, const struct catalog *catalog,
                                 struct text saga_type, struct text saga_id,
                                 struct saga_steps *steps,
                                 struct diag *diag) MUST_CHECK;

/** Queues the rows that were made or have changed, which get an id and the time
 * `now_us`. CONFLICT or UNIQUE when they are sent: another has written them.
 * `arena` holds what is queued. */
enum status
saga_step_store_save(const struct saga_step_store *store, struct db *db,
                     const struct saga_step_owner *owners, size_t count,
                     struct uuid_source *ids, int64_t now_us, int64_t tag,
                     struct arena *arena, struct diag *diag) MUST_CHECK;

#endif
