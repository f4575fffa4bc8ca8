/*
 * SQL projection -- a projection that keeps its own tables, as an applier:
 * its handlers queue statements through ctx, which go out together at the end
 * of the batch.
 */
#ifndef HOST_MODEL_SQL_PROJECTION_H
#define HOST_MODEL_SQL_PROJECTION_H

#include "consumer/applier.h"
#include "model/handler.h"

struct sql_projection; /* model/sql_projection.c */

/** All is borrowed and must outlive the projection. */
struct sql_projection *sql_projection_new(const struct declaration *declaration,
                                          struct handler handler,
                                          struct db *db);
void sql_projection_free(struct sql_projection *projection);
struct applier sql_projection_applier(struct sql_projection *projection);

#endif
