/*
 * SQL files -- the texts of sql/<dialect>/ as the build embedded them.
 *
 * The tables are made by sql/embed.cmake; db/catalog.c is their only reader.
 */
#ifndef HOST_DB_SQL_FILES_H
#define HOST_DB_SQL_FILES_H

#include "db/catalog.h"

struct sql_file {
    const char *name; /* file name without .sql */
    struct text text; /* byte for byte, comments included */
};

struct sql_dialect {
    const char *name;
    const struct sql_file *statements; /* by enum sql_statement */
    const struct catalog_script *scripts;
    size_t nscripts;
};

/** Ends with an entry whose name is NULL. */
extern const struct sql_dialect sql_dialects[];

#endif
