/*
 * Shape -- the columns and indexes of a table that a declaration asks for,
 * independent of the dialect; the driver turns it into DDL and back.
 */
#ifndef HOST_DB_SHAPE_H
#define HOST_DB_SHAPE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>

struct db;

enum db_kind {
    DB_KIND_KEY,      /* 255 characters, compared byte by byte */
    DB_KIND_TEXT,     /* 255 characters; exact comparison */
    DB_KIND_DOCUMENT, /* text of any size (JSON, long text) */
    DB_KIND_INTEGER,  /* 64 bits */
    DB_KIND_DOUBLE,
    DB_KIND_DECIMAL, /* precision, scale */
    DB_KIND_BOOLEAN,
    DB_KIND_DATE,
    DB_KIND_TIME,      /* 6 fractional digits */
    DB_KIND_TIMESTAMP, /* 6 fractional digits, UTC */
    DB_KIND_UUID,
    DB_KIND_BYTES,
    DB_KIND_OTHER, /* describe_table: what none of the above can be */
};

struct db_shape_column {
    const char *name;
    enum db_kind kind;
    int precision; /* DECIMAL: total digits; TEXT of describe: length or 0 */
    int scale;
    bool not_null;
    bool primary;
    bool indexed;         /* wants an index idx_<table>_<column> */
    bool unique;          /* ... a unique one; describe: has one of its own */
    const char *declared; /* describe: the type as the database names it */
};

struct db_shape {
    const char *name;
    const struct db_shape_column *columns;
    size_t ncolumns;
};

/** Creates the table and its indexes; it must not exist. */
enum status db_create_table(struct db *db, const struct db_shape *shape,
                            struct diag *diag) MUST_CHECK;

/** Reads a table of the current schema back. *exists is false when there is
 * none. Memory comes from `arena`. */
enum status db_describe_table(struct db *db, const char *name,
                              struct arena *arena, struct db_shape *shape,
                              bool *exists, struct diag *diag) MUST_CHECK;

/** Appends the statements that db_create_table would run. */
void db_print_table(const struct db *db, const struct db_shape *shape,
                    struct buffer *out);

/** Appends the name of a table or column, quoted, as db_create_table has made
 * it: some databases fold it. */
void db_print_name(const struct db *db, const char *name, struct buffer *out);

/** The beginning of `name` that some database keeps for tables of its own,
 * NULL when there is none. */
const char *db_kept_prefix(const char *name);

/** NULL when the actual column holds every value of the wanted one, else the
 * type it should have, for the error message. */
const char *db_column_fits(const struct db *db,
                           const struct db_shape_column *wanted,
                           const struct db_shape_column *actual);

#endif
