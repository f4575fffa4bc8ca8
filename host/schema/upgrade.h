/*
 * Upgrade -- the ordered steps from one schema version to the next.
 *
 * A step changes tables that are there; tables that a version adds are only
 * scripts in sql/<dialect>/schema/, which schema.c applies after the steps.
 * So a new version is a row in upgrade.c, its statements in
 * sql/<dialect>/statement/, and changed or new scripts.
 */
#ifndef HOST_SCHEMA_UPGRADE_H
#define HOST_SCHEMA_UPGRADE_H

#include "base/buffer.h"
#include "db/db.h"
#include "schema/names.h"

/**
 * Takes the tables from version `from` to the newest in the caller's
 * transaction. Appends a line per step to `report` (may be NULL).
 */
enum status upgrade_run(struct db *db, const struct names *names, int64_t from,
                        struct buffer *report, struct diag *diag) MUST_CHECK;

/** Writes the newest version into the version row. */
enum status upgrade_record(struct db *db, const struct names *names,
                           struct diag *diag) MUST_CHECK;

#endif
