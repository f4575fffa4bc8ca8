/*
 * Catalog -- the statements and scripts of sql/<dialect>/, embedded at build
 * time, with their ${name} placeholders filled with configured table names.
 *
 * sql/<dialect>/statement/NAME.sql is one statement, known as SQL_<NAME>;
 * sql/<dialect>/schema/NN-NAME.sql is one DDL script. Parameters are written
 * ?1, ?2 ... and the driver turns them into its own style. A placeholder
 * takes an identifier only; unknown and unused names are errors.
 *
 * Every dialect has every statement. One that a family of dialects has no use
 * for carries the line `-- not for: DIALECT ...` in its comment, in the folders
 * that have it; asking for it elsewhere is a mistake of the caller's.
 */
#ifndef HOST_DB_CATALOG_H
#define HOST_DB_CATALOG_H

#include "base/buffer.h"
#include "db/db.h"
#include "sql_statements.h" /* generated: enum sql_statement, SQL_COUNT */

struct catalog; /* db/catalog.c */

struct catalog_name {
    const char *placeholder; /* without ${} */
    const char *value;       /* a checked identifier */
};

/** Fills every statement of the dialect. `names` ends with {NULL, NULL}. */
enum status catalog_open(const char *dialect, const struct catalog_name *names,
                         struct catalog **catalog,
                         struct diag *diag) MUST_CHECK;
void catalog_close(struct catalog *catalog);

/** Never NULL. Lives as long as the catalog. */
const struct db_sql *catalog_sql(const struct catalog *catalog,
                                 enum sql_statement statement);

/** Fills one text. CONFIG names an unknown placeholder. Used for scripts and
 * for statements that exist once per table. */
enum status catalog_fill(struct text text, const struct catalog_name *names,
                         struct buffer *out, struct diag *diag) MUST_CHECK;

struct catalog_script {
    const char *name; /* "event-store" of 02-event-store.sql */
    struct text text; /* raw, with placeholders */
};

/** The DDL scripts of a dialect in the order they are applied; *count of
 * them; NULL for a dialect that has none. */
const struct catalog_script *catalog_scripts(const char *dialect,
                                             size_t *count);
/** The text of a statement with its placeholders, for per-table statements; the
 * comment at its top is left out. */
struct text catalog_raw(const char *dialect, enum sql_statement statement);

#endif
