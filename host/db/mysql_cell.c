#include "db/mysql_cell.h"

#include "base/memory.h"

#define CELL_FIRST 256             /* bytes of a text column's first buffer */
#define CELL_KEPT  ((size_t)65536) /* larger ones go with their result */

#define CHARSET_BINARY 63

struct mysql_cell *mysql_cell_of(const struct db_rows *rows, size_t column)
{
    const struct mysql_rows *mine = (const struct mysql_rows *)rows;

    return mine->statement != NULL && column < mine->statement->ncells
               ? &mine->statement->cells[column]
               : NULL;
}

static void bind_text(struct mysql_cell *cell, MYSQL_BIND *bind)
{
    bind->buffer_type = cell->binary ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
    bind->buffer = cell->buffer;
    bind->buffer_length = cell->capacity;
}

void mysql_cell_grow(struct mysql_cell *cell, size_t capacity, MYSQL_BIND *bind)
{
    cell->buffer = mem_grow(cell->buffer, capacity, 1);
    cell->capacity = capacity;
    bind_text(cell, bind);
}

void mysql_cell_bind(struct mysql_cell *cell, MYSQL_BIND *bind)
{
    *bind = (MYSQL_BIND){.length = &cell->length,
                         .is_null = &cell->is_null,
                         .error = &cell->error,
                         .buffer = &cell->value};
    switch (cell->type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->is_unsigned = cell->is_unsigned;
        break;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        break;
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
        bind->buffer_type = MYSQL_TYPE_DATETIME;
        bind->buffer_length = sizeof(cell->value.time);
        break;
    default:
        if (cell->capacity == 0)
            mysql_cell_grow(cell, CELL_FIRST, bind);
        bind_text(cell, bind);
        break;
    }
}

bool mysql_cell_is_integer(const struct mysql_cell *cell)
{
    return cell->type == MYSQL_TYPE_TINY || cell->type == MYSQL_TYPE_SHORT ||
           cell->type == MYSQL_TYPE_INT24 || cell->type == MYSQL_TYPE_LONG ||
           cell->type == MYSQL_TYPE_LONGLONG || cell->type == MYSQL_TYPE_YEAR;
}

bool mysql_cell_is_double(const struct mysql_cell *cell)
{
    return cell->type == MYSQL_TYPE_FLOAT || cell->type == MYSQL_TYPE_DOUBLE;
}

bool mysql_cell_is_time(const struct mysql_cell *cell)
{
    return cell->type == MYSQL_TYPE_DATETIME ||
           cell->type == MYSQL_TYPE_TIMESTAMP;
}

bool mysql_cell_is_text(const struct mysql_cell *cell)
{
    return !mysql_cell_is_integer(cell) && !mysql_cell_is_double(cell) &&
           !mysql_cell_is_time(cell);
}

static void make_cell(struct mysql_cell *cell, const MYSQL_FIELD *field)
{
    cell->type = field->type;
    cell->is_unsigned = (field->flags & UNSIGNED_FLAG) != 0;
    cell->decimal = field->type == MYSQL_TYPE_NEWDECIMAL ||
                    field->type == MYSQL_TYPE_DECIMAL;
    /* dates and numbers are binary, too, says the server */
    cell->binary = field->type == MYSQL_TYPE_BIT ||
                   (field->charsetnr == CHARSET_BINARY &&
                    field->type >= MYSQL_TYPE_TINY_BLOB &&
                    field->type <= MYSQL_TYPE_STRING);
    cell->name = mem_copy_text(field->name, strlen(field->name));
}

/* The types of a result may follow those of its parameters. */
static bool cells_fit(const struct mysql_statement *statement,
                      const MYSQL_RES *shape)
{
    if (statement->ncells != shape->field_count)
        return false;
    for (size_t i = 0; i < statement->ncells; i++) {
        const struct mysql_cell *cell = &statement->cells[i];
        const MYSQL_FIELD *field = &shape->fields[i];

        if (cell->type != field->type ||
            cell->is_unsigned != ((field->flags & UNSIGNED_FLAG) != 0) ||
            strcmp(cell->name, field->name) != 0)
            return false;
    }
    return true;
}

static void make_cells(struct mysql_statement *statement,
                       const MYSQL_RES *shape)
{
    size_t count = shape->field_count;

    mysql_cell_free_all(statement);
    statement->cells = mem_alloc(count * sizeof(*statement->cells));
    statement->binds = mem_alloc(count * sizeof(*statement->binds));
    statement->ncells = count;
    for (size_t i = 0; i < count; i++)
        make_cell(&statement->cells[i], &shape->fields[i]);
}

enum status mysql_cell_bind_result(struct db_session *session,
                                   struct mysql_statement *statement,
                                   struct diag *diag)
{
    MYSQL_RES *shape = mysql_stmt_result_metadata(statement->handle);

    if (shape == NULL)
        return diag_set(diag, STATUS_UNAVAILABLE, "out of memory");
    if (!cells_fit(statement, shape))
        make_cells(statement, shape);
    mysql_free_result(shape);
    for (size_t i = 0; i < statement->ncells; i++)
        mysql_cell_bind(&statement->cells[i], &statement->binds[i]);
    if (mysql_stmt_bind_result(statement->handle, statement->binds) != 0)
        return mysql_fault_statement(session, statement->handle, diag);
    return STATUS_OK;
}

void mysql_cell_shrink(struct mysql_statement *statement)
{
    for (size_t i = 0; i < statement->ncells; i++) {
        struct mysql_cell *cell = &statement->cells[i];

        if (cell->capacity <= CELL_KEPT)
            continue;
        mem_free(cell->buffer);
        cell->buffer = NULL;
        cell->capacity = 0;
    }
}

void mysql_cell_free_all(struct mysql_statement *statement)
{
    for (size_t i = 0; i < statement->ncells; i++) {
        mem_free(statement->cells[i].name);
        mem_free(statement->cells[i].buffer);
    }
    mem_free(statement->cells);
    mem_free(statement->binds);
    statement->cells = NULL;
    statement->binds = NULL;
    statement->ncells = 0;
}
