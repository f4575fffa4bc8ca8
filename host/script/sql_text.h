/*
 * SQL text -- the statements of scripts with their `?` rewritten for the
 * dialect, once per text. A statement stays where it is until the batch ends,
 * because what is queued points to it.
 */
#ifndef HOST_SCRIPT_SQL_TEXT_H
#define HOST_SCRIPT_SQL_TEXT_H

#include "base/map.h"
#include "base/status.h"
#include "db/db.h"

struct sql_text {
    struct db_sql sql;
    size_t parameters;
};

struct sql_texts {
    struct sql_text **items;
    size_t count, capacity;
    struct map index; /* text as written -> place in items */
};

/** The statement of a text. INVALID: an unterminated string or comment. */
enum status sql_text_find(struct sql_texts *texts, struct text text,
                          const char *dialect, const struct sql_text **found,
                          struct diag *diag) MUST_CHECK;

/** True if the statement names the table: as a word of its own, quoted or not,
 * in either case; not in a string of single quotes or a comment. */
bool sql_text_names(struct text sql, const char *table);

/** Takes the next table that statements create off their front: its name, as it
 * is written. Not temporary ones, and none that is named with its schema. */
bool sql_text_next_table(struct text *rest, struct text *table);

/** Scripts that paste values into SQL make ever new texts: between batches
 * they are forgotten once there are many. */
void sql_text_trim(struct sql_texts *texts);
void sql_text_free(struct sql_texts *texts);

#endif
