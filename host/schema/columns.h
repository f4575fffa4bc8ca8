/*
 * Columns -- which columns the host's tables have, and which ones are missing
 * from a database. Only names: types are the business of the scripts.
 */
#ifndef HOST_SCHEMA_COLUMNS_H
#define HOST_SCHEMA_COLUMNS_H

#include "base/arena.h"
#include "base/map.h"
#include "db/db.h"
#include "schema/names.h"

/** The tables and columns of a database. Owned by the caller. */
struct columns {
    struct arena arena;
    struct map found; /* "table" and "table.column", lower case */
};

#define COLUMNS_EMPTY ((struct columns){ARENA_EMPTY, MAP_EMPTY})

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

#endif
