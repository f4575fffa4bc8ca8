/*
 * Columns -- which columns the host's tables have, which ones are missing from
 * a database, and which ones merge keys that differ. Types are the business of
 * the scripts.
 */
#ifndef HOST_SCHEMA_COLUMNS_H
#define HOST_SCHEMA_COLUMNS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "db/db.h"
#include "schema/names.h"

/** The tables and columns of a database. Owned by the caller. */
struct columns {
    struct arena arena;
    struct map found; /* "table" and "table.column", lower case */
    /* the keys of `found` whose collation merges values, and its name */
    struct map merging;
    struct buffer collations; /* strings at the offsets that `merging` has */
};

#define COLUMNS_EMPTY                                                          \
    ((struct columns){ARENA_EMPTY, MAP_EMPTY, MAP_EMPTY, BUFFER_EMPTY})

/** Reads what is there. */
enum status columns_read(struct db *db, struct columns *columns,
                         struct diag *diag) MUST_CHECK;
void columns_free(struct columns *columns);

/** `column` NULL: the table itself. Upper and lower case are one. */
bool columns_has(const struct columns *columns, const char *table,
                 const char *column);

/** The columns a table must have; ends with NULL. */
const char *const *columns_wanted(enum table_id id);

/** The first wanted column that an existing table lacks, or NULL. */
const char *columns_lacking(const struct columns *columns, const char *table,
                            enum table_id like);

/** The first column of an existing table that must compare its values byte by
 * byte and does not, with the name of its collation; or NULL. */
const char *columns_merging(const struct columns *columns, const char *table,
                            enum table_id like, const char **collation);

#endif
