/*
 * Projection delete -- deletes read models of a projection past its handlers:
 * those that a rebuild has not made anew, and single ones that an operator
 * wants to be made anew. Their epochs go with them, and the topic of the
 * projection is told.
 */
#ifndef HOST_MODEL_PROJECTION_DELETE_H
#define HOST_MODEL_PROJECTION_DELETE_H

#include "base/clock.h"
#include "model/projection_topic.h"
#include "model/read_model_table.h"

/** What it works on; all borrowed. `topic` is begun anew. */
struct projection_delete {
    const struct declaration *declaration;
    const struct catalog *catalog;
    struct read_model_table *table;
    struct projection_topic *topic;
    struct uuid_source *ids;
    const struct clock *clock;
    struct arena *arena; /* holds what is queued until it is sent */
};

/** Deletes those of the keys that are stored, and the epochs of all. Statuses
 * as read_model_table_write. */
enum status projection_delete_keys(const struct projection_delete *delete,
                                   struct db *db, const struct text *keys,
                                   size_t count, struct diag *diag) MUST_CHECK;

/** Deletes those of a rebuild behind the key *after, and takes *after on. *more
 * is false when there was none. */
enum status projection_delete_stale(const struct projection_delete *delete,
                                    struct db *db,
                                    const struct applier_stale *stale,
                                    struct buffer *after, bool *more,
                                    struct diag *diag) MUST_CHECK;

#endif
