/*
 * Saga retention -- deletes sagas that were completed long ago, with their
 * deadlines and steps, in small batches. The caller owns the transaction and
 * says when.
 */
#ifndef HOST_MODEL_SAGA_RETENTION_H
#define HOST_MODEL_SAGA_RETENTION_H

#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

/** Deletes up to `limit` sagas of any type that were completed before
 * `before_us`, the oldest first; *count of them. CONFLICT when one is written
 * meanwhile. */
enum status saga_retention_delete(struct db *db, const struct catalog *catalog,
                                  const struct names *names, int64_t before_us,
                                  size_t limit, size_t *count,
                                  struct diag *diag) MUST_CHECK;

#endif
