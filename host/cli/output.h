/*
 * Output -- tables and fields for people, aligned by characters, and pieces of
 * text that are safe on a terminal. JSON is written with base/json.h.
 */
#ifndef HOST_CLI_OUTPUT_H
#define HOST_CLI_OUTPUT_H

#include "base/buffer.h"
#include "base/text.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** A table that is collected and printed at once. */
struct output_table {
    size_t ncolumns;
    struct buffer *cells; /* row-major */
    size_t ncells;
    size_t capacity;
    bool *right;   /* column is aligned to the right */
    bool no_color; /* headings are bold unless set */
};

/** Headings ending with NULL; a heading that starts with '>' is a column of
 * numbers, aligned to the right (the '>' is not printed). */
void output_table_begin(struct output_table *table, const char *const *headings,
                        bool color);
/** Adds the next cell, left to right. Control characters become escapes. */
void output_cell(struct output_table *table, struct text text);
void output_cell_string(struct output_table *table, const char *string);
void output_cell_int64(struct output_table *table, int64_t value);
size_t output_table_rows(const struct output_table *table); /* no heading */
/** Prints and frees it. Rows that are not complete are filled with blanks. */
void output_table_end(struct output_table *table, FILE *out);
/** Frees it unprinted. */
void output_table_free(struct output_table *table);

/** Appends `text` with control characters and bad UTF-8 made visible: a
 * stored value must not drive the terminal. */
void output_safe(struct buffer *out, struct text text);

#define OUTPUT_FIELD_WIDTH 14 /* of names of at most 13 characters */

/** A line of one row that is shown whole: its name in `width` columns, and its
 * value made safe; nothing when the value's data is NULL. */
void output_field(FILE *out, int width, const char *name, struct text value);
void output_field_id(FILE *out, int width, const char *name,
                     const struct uuid *id);
void output_field_time(FILE *out, int width, const char *name, int64_t time_us);

/** Columns that `text` takes on a terminal (characters; wide ones count two,
 * combining ones none). */
size_t output_width(struct text text);

/** "1,234,567" */
void output_grouped(struct buffer *out, int64_t value);

/** "1.2 s", "3 min", "2 h 5 min", "4 d": for lag and elapsed time. */
void output_duration(struct buffer *out, int64_t us);

#endif
