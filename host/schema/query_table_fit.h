/*
 * Query table fit -- whether a table that is there holds every value that a
 * declaration may give it, and what to do where it does not. Part of
 * query_table.c; it runs no statement.
 */
#ifndef HOST_SCHEMA_QUERY_TABLE_FIT_H
#define HOST_SCHEMA_QUERY_TABLE_FIT_H

#include "schema/query_table.h"

#define QUERY_TABLE_HOST_COLUMNS 3 /* before the fields */

struct query_table_fit {
    struct db *db;
    const struct names *names;
    const struct query_table *table;
    const struct db_shape *wanted; /* what the declaration asks for */
    const struct db_shape *actual; /* what is there */
    bool create;                   /* schema.create, for what is to be done */
    bool *wrong; /* set when the fault is that of a query table */
    struct diag *diag;
};

/** CONFIG with the first fault: table, column, both shapes and the remedy. */
enum status
query_table_fit_check(const struct query_table_fit *check) MUST_CHECK;

/** Appends the same steps for every fault that needs the table made anew, in an
 * order that the foreign keys allow; ready to be pasted. `exists`: the table is
 * to be dropped, too. */
void query_table_fit_remedy(const struct names *names,
                            const struct query_table *table, bool exists,
                            struct buffer *out);

#endif
