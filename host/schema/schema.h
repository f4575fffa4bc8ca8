/*
 * Schema -- the host's tables in a database: created, checked, upgraded,
 * seeded and guarded. Nothing is ever dropped.
 */
#ifndef HOST_SCHEMA_SCHEMA_H
#define HOST_SCHEMA_SCHEMA_H

#include "base/buffer.h"
#include "db/db.h"
#include "schema/names.h"

#define SCHEMA_VERSION 1 /* of the tables this program knows */

struct schema_options {
    const struct names *names;
    int partitions; /* the configured N */
    bool create;    /* schema.create */
};

/**
 * Makes the database ready: creates what is missing (when `create`), inserts
 * and verifies the seed rows whatever `create` says, checks the version and
 * the partition count. Safe when several programs start at once. Does nothing
 * but read when all is in place.
 * CONFIG: a table is missing and creation is off (names table and script).
 * REFUSED: partition count differs; the schema is newer than this program;
 * the schema is older and `create` is off (says `moontide schema upgrade`).
 */
enum status schema_prepare(struct db *db, const struct schema_options *options,
                           struct diag *diag) MUST_CHECK;

/** The same checks, but writes nothing (read-only verbs). A database without
 * the tables is REFUSED with a hint. */
enum status schema_verify(struct db *db, const struct schema_options *options,
                          struct diag *diag) MUST_CHECK;

/** What schema_upgrade did, one line each, appended to `report`. */
enum status schema_upgrade(struct db *db, const struct schema_options *options,
                           struct buffer *report, struct diag *diag) MUST_CHECK;

/** The DDL of a dialect: filled with `names`, or raw with placeholders when
 * names is NULL. Per-table scripts appear once per own table too. It runs as
 * it is in the database's client, in Flyway and in Liquibase. */
enum status schema_print(const char *dialect, const struct names *names,
                         struct buffer *out, struct diag *diag) MUST_CHECK;

/** What stands for the placeholders of the raw DDL: a line PLACEHOLDER=NAME for
 * each, or one JSON object. */
void schema_names(const struct names *names, bool json, struct buffer *out);

#endif
