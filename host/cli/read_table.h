/*
 * Read table -- read models as people see them: a row each, with the key and
 * the declared fields, or the whole state where none is declared.
 */
#ifndef HOST_CLI_READ_TABLE_H
#define HOST_CLI_READ_TABLE_H

#include "cli/output.h"
#include "model/declaration.h"

struct read_table {
    const struct declaration *declaration;
    struct output_table table;
    struct buffer scratch;
};

/** `declaration` is borrowed; read_table_end or read_table_free is owed. */
void read_table_begin(struct read_table *table,
                      const struct declaration *declaration, bool color);
/** `state` is the JSON of one read model. */
void read_table_row(struct read_table *table, struct text key,
                    struct text state);
/** Prints it. */
void read_table_end(struct read_table *table, FILE *out);
void read_table_free(struct read_table *table);

#endif
