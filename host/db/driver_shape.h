/*
 * Driver shape -- what the drivers have in common in making a table from a
 * shape and in reading its shape back, which a dialect tells by one row for
 * each column and one for each index of a single column.
 */
#ifndef HOST_DB_DRIVER_SHAPE_H
#define HOST_DB_DRIVER_SHAPE_H

#include "db/driver.h"

/** PERMANENT unless the names of the table and its columns are good. */
enum status driver_shape_check_names(const struct db_shape *shape,
                                     struct diag *diag) MUST_CHECK;

/** Appends the line of the primary key, if any, as it stands in a CREATE
 * TABLE behind the columns; `quote` stands around each name. */
void driver_shape_print_key(const struct db_shape *shape, char quote,
                            struct buffer *out);

/** Runs what `print` makes of the shape, a script of the host. */
enum status driver_shape_create(
    struct db_session *session, const struct db_shape *shape,
    void (*print)(const struct db_shape *shape, struct buffer *out),
    enum status (*script)(struct db_session *session, struct text script,
                          enum db_origin origin, struct diag *diag),
    struct diag *diag) MUST_CHECK;

/* A table while it is read. */
struct driver_shape {
    struct db_session *session;
    /** The driver's own, inside of the call that describes the table. */
    enum status (*query)(struct db_session *session, const struct db_sql *sql,
                         const struct db_value *params, size_t nparams,
                         struct db_rows **rows, struct diag *diag);
    struct text table;   /* the only parameter of each query */
    struct arena *arena; /* of all that is read */
    struct db_shape_column *columns;
    size_t count;
};

/** Fills a column, zeroed before, from a row. */
typedef void (*driver_shape_column_fn)(struct db_rows *rows,
                                       struct arena *arena,
                                       struct db_shape_column *column);

/** Reads the columns; there are none when there is no such table. */
enum status driver_shape_columns(struct driver_shape *shape, const char *query,
                                 driver_shape_column_fn take,
                                 struct diag *diag) MUST_CHECK;

/** Marks the columns that have an index of their own. Rows: the name of the
 * column; true when the index is a unique one. */
enum status driver_shape_indexes(struct driver_shape *shape, const char *query,
                                 struct diag *diag) MUST_CHECK;

#endif
