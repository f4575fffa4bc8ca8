/*
 * Saga instance -- the rows of SAGA_INSTANCES: the state of one saga each, read
 * and written in bulk. Which saga is at work, and what may happen to it, is
 * told by model/saga_batch.h; this file knows rows only.
 *
 * The id is the instance: one that was deleted and begun anew under the same
 * saga id has another. The version is random at first and checked by every
 * write, so none hits a row that is not as it was read.
 */
#ifndef HOST_MODEL_SAGA_INSTANCE_H
#define HOST_MODEL_SAGA_INSTANCE_H

#include "base/arena.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

/** Bytes are borrowed. */
struct saga_instance {
    struct text saga_id;
    bool stored; /* it has a row; of one without, nothing below counts */
    struct uuid id;
    int64_t version;
    struct text state; /* JSON */
    bool completed;
    int64_t completed_at; /* microseconds */
    bool completes;       /* with the write to come */
};

/** The statements of one saga type; fields are for saga_instance.c. */
struct saga_instances {
    struct text saga_type;
    struct db_table insert, update, complete;
    const struct db_sql *load;
};

/** All is borrowed and must outlive it. */
void saga_instances_init(struct saga_instances *instances,
                         const char *saga_type, const struct names *names,
                         const struct catalog *catalog);

/** Reads the rows of `count` distinct saga ids, which are set; the rest is
 * filled. Bytes go to `arena`. A constant number of round trips. */
enum status saga_instances_load(const struct saga_instances *instances,
                                struct db *db, struct saga_instance *items,
                                size_t count, struct arena *arena,
                                struct diag *diag) MUST_CHECK;

/** The first version of a new instance: the random part of its id. */
int64_t saga_instance_version(const struct uuid *id);

/** Queues the rows: new ones (UNIQUE when the saga has one already), or, with
 * the version that was read in `version`, those that are stored (CONFLICT when
 * a row is not as it was read), which get the next version. All bytes must live
 * until they are sent; memory for parameters comes from `arena`. */
enum status saga_instances_insert(const struct saga_instances *instances,
                                  struct db *db,
                                  const struct saga_instance *const *rows,
                                  size_t count, int64_t tag,
                                  struct arena *arena,
                                  struct diag *diag) MUST_CHECK;
enum status saga_instances_update(const struct saga_instances *instances,
                                  struct db *db,
                                  const struct saga_instance *const *rows,
                                  size_t count, int64_t tag,
                                  struct arena *arena,
                                  struct diag *diag) MUST_CHECK;

#endif
