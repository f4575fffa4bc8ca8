/*
 * Driver bulk -- what the drivers have in common in turning a bulk statement
 * into SQL: which names and columns it may have, and the text of a statement
 * that takes one row, each value by a parameter of its own.
 */
#ifndef HOST_DB_DRIVER_BULK_H
#define HOST_DB_DRIVER_BULK_H

#include "db/driver.h"

/** PERMANENT unless every database takes the name for a table or a column. */
enum status driver_bulk_check_name(const char *name,
                                   struct diag *diag) MUST_CHECK;

/** PERMANENT unless the names of the table and its columns are good. */
enum status driver_bulk_check_names(const struct db_table *table,
                                    struct diag *diag) MUST_CHECK;

/** PERMANENT unless the roles of the columns fit the statement. */
enum status driver_bulk_check_roles(enum db_bulk what,
                                    const struct db_table *table,
                                    struct diag *diag) MUST_CHECK;

/** PERMANENT unless exactly one column is the key, as a lookup needs it. */
enum status driver_bulk_check_lookup(const struct db_table *table,
                                     struct diag *diag) MUST_CHECK;

struct driver_bulk_text {
    struct buffer *out;
    const struct db_table *table;
    /** Appends the parameter that stands for a column's value. */
    void (*mark)(struct driver_bulk_text *text, size_t column);
    /** Appends what an insert does when the row is there. */
    void (*conflict)(struct driver_bulk_text *text);
    void *arg; /* for the two */
};

/** Checks names and roles and puts the statement of one row into text->out,
 * in place of what is there. */
enum status driver_bulk_build(struct driver_bulk_text *text, enum db_bulk what,
                              struct diag *diag) MUST_CHECK;

#endif
