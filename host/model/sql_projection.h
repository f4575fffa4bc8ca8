/*
 * SQL projection -- handlers without a state, as an applier: they queue
 * statements through ctx, which go out together at the end of the batch. A
 * projection that keeps its own tables is no more than that; a listener's
 * handlers (model/listener.h) may also cause effects.
 */
#ifndef HOST_MODEL_SQL_PROJECTION_H
#define HOST_MODEL_SQL_PROJECTION_H

#include "consumer/applier.h"
#include "model/handler.h"

struct sql_projection; /* model/sql_projection.c */

/** All is borrowed and must outlive the projection. `effects`: what handlers
 * may cause; NULL for a projection. */
struct sql_projection *sql_projection_new(const struct declaration *declaration,
                                          struct handler handler, struct db *db,
                                          struct effects *effects);
void sql_projection_free(struct sql_projection *projection);
struct applier sql_projection_applier(struct sql_projection *projection);

#endif
