/*
 * Query table -- the table of one keyed projection: read_model_id, message_id,
 * state, and a column per declared field.
 *
 * An existing table is never altered, only checked; each fault has its own
 * error that names table, column, both shapes and the remedy.
 */
#ifndef HOST_SCHEMA_QUERY_TABLE_H
#define HOST_SCHEMA_QUERY_TABLE_H

#include "db/db.h"
#include "db/shape.h"
#include "schema/names.h"

struct query_field {
    const char *name;
    enum db_kind kind;
    int precision, scale;
    bool unique;
};

struct query_table {
    const char *projection; /* for the messages */
    const char *name;       /* the table's name */
    const struct query_field *fields;
    size_t nfields;
};

/** Table name of a projection: every character other than an ASCII letter, a
 * digit or _ becomes _. CONFIG when it (or an index name) gets longer than
 * 63 characters, or starts with a digit. */
enum status query_table_name(const char *projection, char out[], size_t size,
                             struct diag *diag) MUST_CHECK;

/** The checks that need no database: the names of fields and indexes. CONFIG
 * names the field. */
enum status query_table_check(const struct query_table *table,
                              struct diag *diag) MUST_CHECK;

enum query_table_state {
    QUERY_TABLE_FITS,
    QUERY_TABLE_MISSING,
    QUERY_TABLE_WRONG, /* a query table of another shape */
};

/** How it stands with the table; of a wrong one `diag` says what is. CONFIG
 * when the projection cannot have it at
 * all: a table of the host, or no query table. */
enum status query_table_look(struct db *db, const struct names *names,
                             const struct query_table *table,
                             enum query_table_state *state,
                             struct diag *diag) MUST_CHECK;

/** Drops the table if it is a query table of another shape. Who reads or
 * writes it must have stopped. */
enum status query_table_drop(struct db *db, const struct names *names,
                             const struct query_table *table,
                             struct diag *diag) MUST_CHECK;

/**
 * Creates the table when it is missing and `create`, else checks it; makes its
 * own transactions. CONFIG with the fault: a table of the host; missing table;
 * no query table;
 * message_id of a wrong type; a field's column missing or too narrow; unique
 * index missing or surplus.
 */
enum status query_table_prepare(struct db *db, const struct names *names,
                                const struct query_table *table, bool create,
                                struct diag *diag) MUST_CHECK;

#endif
