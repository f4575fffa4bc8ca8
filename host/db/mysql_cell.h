/*
 * MySQL cell -- where the client library puts one column of a result, and the
 * buffers behind it, which stay with their statement from one run to the next.
 */
#ifndef HOST_DB_MYSQL_CELL_H
#define HOST_DB_MYSQL_CELL_H

#include "db/mysql_session.h"

#include "base/clock.h"

struct mysql_cell {
    enum enum_field_types type; /* as the server sent it */
    bool is_unsigned;
    bool binary;  /* bytes, not text */
    bool decimal; /* text of a number */
    char *name;
    union mysql_number {
        int64_t integer;
        double number;
        MYSQL_TIME time;
    } value;
    char *buffer; /* of texts */
    size_t capacity;
    unsigned long length;
    my_bool is_null;
    my_bool error;
    char shown[CLOCK_TEXT_SIZE]; /* a value that is text for the caller only */
};

/** NULL for a column that is not there, or a result that has ended. */
struct mysql_cell *mysql_cell_of(const struct db_rows *rows, size_t column);

bool mysql_cell_is_integer(const struct mysql_cell *cell);
bool mysql_cell_is_double(const struct mysql_cell *cell);
bool mysql_cell_is_time(const struct mysql_cell *cell);
/** Whether its value is in its buffer: text, bytes, or a number as text. */
bool mysql_cell_is_text(const struct mysql_cell *cell);

/** Makes the cells of the statement's result, unless they are there, and has
 * rows put into them. */
enum status mysql_cell_bind_result(struct db_session *session,
                                   struct mysql_statement *statement,
                                   struct diag *diag) MUST_CHECK;
/** Describes a cell to the library; bound again, it takes effect. */
void mysql_cell_bind(struct mysql_cell *cell, MYSQL_BIND *bind);
/** Gives a text more room; what is in the buffer stays. */
void mysql_cell_grow(struct mysql_cell *cell, size_t capacity,
                     MYSQL_BIND *bind);
/** Gives large buffers back: they go with their result. */
void mysql_cell_shrink(struct mysql_statement *statement);
void mysql_cell_free_all(struct mysql_statement *statement);

#endif
