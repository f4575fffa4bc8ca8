/*
 * Seed -- the rows the host cannot work without: schema version, partition
 * count, position counters, marks. Inserted where they are missing, whoever
 * created the tables; a row that is there is never overwritten.
 *
 * All tables must exist. The caller owns the transaction.
 */
#ifndef HOST_SCHEMA_SEED_H
#define HOST_SCHEMA_SEED_H

#include "db/db.h"
#include "schema/names.h"

/** Whether no row is missing. */
enum status seed_complete(struct db *db, const struct names *names,
                          bool *complete, struct diag *diag) MUST_CHECK;

enum status seed_insert(struct db *db, const struct names *names,
                        int partitions, struct diag *diag) MUST_CHECK;

/** REFUSED when another partition count is stored; names both. Needs only
 * the table of the partition count. */
enum status seed_check_partitions(struct db *db, const struct names *names,
                                  int partitions, struct diag *diag) MUST_CHECK;

/** REFUSED when a counter stands below a position that its topic holds: it
 * would hand that position out again. */
enum status seed_check_counters(struct db *db, const struct names *names,
                                struct diag *diag) MUST_CHECK;

/** REFUSED when an aggregate that has a table of its own has events in the
 * shared one: they would be lost to its readers. */
enum status seed_check_aggregates(struct db *db, const struct names *names,
                                  struct diag *diag) MUST_CHECK;

#endif
