/*
 * Fill -- scripts and statements of the schema with table names filled in, as
 * they are before a catalog is open.
 *
 * A text that names the event table or the snapshot table is filled once with
 * the shared name and once more for each aggregate type that has its own.
 */
#ifndef HOST_SCHEMA_FILL_H
#define HOST_SCHEMA_FILL_H

#include "base/buffer.h"
#include "db/catalog.h"
#include "schema/names.h"

#define FILL_ROUTINE     "append_routine" /* its placeholder */
#define FILL_ROUTINE_MAX (TABLE_NAME_MAX + 8)

/** The routine by which programs in other languages append to an event table,
 * where the database gives each table one of its own. */
void fill_routine(const char *table, char out[FILL_ROUTINE_MAX + 1]);

/** `table` is the own table that the text was filled for, NULL for the shared
 * names. */
typedef enum status (*fill_fn)(void *arg, struct text filled, const char *table,
                               struct diag *diag);

/**
 * Calls `fn` with each filling of `raw`. CONFIG when a name that is derived
 * from a table's (of an index, say) gets longer than TABLE_NAME_MAX: some
 * databases would cut it, and two names might become one.
 */
enum status fill_each(struct text raw, const struct names *names, fill_fn fn,
                      void *arg, struct diag *diag) MUST_CHECK;

/** Runs a statement on the shared tables. */
enum status fill_execute(struct db *db, const struct names *names,
                         enum sql_statement statement,
                         const struct db_value *params, size_t nparams,
                         struct diag *diag) MUST_CHECK;

/** Runs a statement on one table, whichever it is: the text names the event
 * table in its place. */
enum status fill_execute_on(struct db *db, const char *table,
                            enum sql_statement statement,
                            struct diag *diag) MUST_CHECK;

/** Reads one number from the shared tables, as db_query_int64. */
enum status fill_query(struct db *db, const struct names *names,
                       enum sql_statement statement, int64_t *value,
                       bool *found, struct diag *diag) MUST_CHECK;

/** The name of the script that creates a table; NULL when there is none. */
const char *fill_script_of(const char *dialect, enum table_id id);

#endif
