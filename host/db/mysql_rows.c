#include "db/mysql_session.h"

#include "base/clock.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CELL_FIRST 256             /* bytes of a text column's first buffer */
#define CELL_KEPT  ((size_t)65536) /* larger ones go with their result */

#define CHARSET_BINARY 63

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

struct mysql_saved {
    struct mysql_saved *next;
    struct saved_cell {
        union mysql_number value;
        const char *text; /* of `length` bytes, when the cell is one */
        unsigned long length;
        my_bool is_null;
    } cells[];
};

static struct mysql_rows *own(struct db_rows *rows)
{
    return (struct mysql_rows *)rows;
}

/* NULL for a column that is not there, or a result that has ended. */
static struct mysql_cell *cell_of(const struct db_rows *rows, size_t column)
{
    const struct mysql_rows *mine = (const struct mysql_rows *)rows;

    return mine->statement != NULL && column < mine->statement->ncells
               ? &mine->statement->cells[column]
               : NULL;
}

/* --- buffers -------------------------------------------------------------- */

void mysql_rows_free_cells(struct mysql_statement *statement)
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

static void bind_text(struct mysql_cell *cell, MYSQL_BIND *bind)
{
    bind->buffer_type = cell->binary ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
    bind->buffer = cell->buffer;
    bind->buffer_length = cell->capacity;
}

static void grow(struct mysql_cell *cell, size_t capacity, MYSQL_BIND *bind)
{
    cell->buffer = mem_grow(cell->buffer, capacity, 1);
    cell->capacity = capacity;
    bind_text(cell, bind);
}

static void bind_cell(struct mysql_cell *cell, MYSQL_BIND *bind)
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
            grow(cell, CELL_FIRST, bind);
        bind_text(cell, bind);
        break;
    }
}

static bool is_integer(const struct mysql_cell *cell)
{
    return cell->type == MYSQL_TYPE_TINY || cell->type == MYSQL_TYPE_SHORT ||
           cell->type == MYSQL_TYPE_INT24 || cell->type == MYSQL_TYPE_LONG ||
           cell->type == MYSQL_TYPE_LONGLONG || cell->type == MYSQL_TYPE_YEAR;
}

static bool is_double(const struct mysql_cell *cell)
{
    return cell->type == MYSQL_TYPE_FLOAT || cell->type == MYSQL_TYPE_DOUBLE;
}

static bool is_time(const struct mysql_cell *cell)
{
    return cell->type == MYSQL_TYPE_DATETIME ||
           cell->type == MYSQL_TYPE_TIMESTAMP;
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

    mysql_rows_free_cells(statement);
    statement->cells = mem_alloc(count * sizeof(*statement->cells));
    statement->binds = mem_alloc(count * sizeof(*statement->binds));
    statement->ncells = count;
    for (size_t i = 0; i < count; i++)
        make_cell(&statement->cells[i], &shape->fields[i]);
}

static enum status bind_result(struct db_session *session,
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
        bind_cell(&statement->cells[i], &statement->binds[i]);
    if (mysql_stmt_bind_result(statement->handle, statement->binds) != 0)
        return mysql_fault_statement(session, statement->handle, diag);
    return STATUS_OK;
}

/* --- results -------------------------------------------------------------- */

static enum status run(struct db_session *session,
                       struct mysql_statement *statement,
                       const struct db_value *params, size_t nparams,
                       struct diag *diag)
{
    unsigned array_size = 0;
    enum status status;

    status = mysql_param_bind(session, statement, params, nparams, diag);
    if (status != STATUS_OK)
        return status;
    (void)mysql_stmt_attr_set(statement->handle, STMT_ATTR_ARRAY_SIZE,
                              &array_size);
    session->round_trips++;
    session->touched = true;
    if (mysql_stmt_execute(statement->handle) != 0)
        return mysql_fault_statement(session, statement->handle, diag);
    if (mysql_stmt_field_count(statement->handle) == 0) {
        mysql_rows_free_cells(statement); /* a statement that only writes */
        return STATUS_OK;
    }
    status = bind_result(session, statement, diag);
    return status;
}

enum status mysql_rows_query(struct db_session *session,
                             const struct db_sql *sql,
                             const struct db_value *params, size_t nparams,
                             struct db_rows **rows, struct diag *diag)
{
    struct mysql_statement *statement;
    struct mysql_rows *result;
    enum status status;

    status = mysql_connect_limit(session, sql->origin, diag);
    if (status == STATUS_OK)
        status = mysql_cache_take(session, sql, &statement, diag);
    if (status != STATUS_OK)
        return status;
    status = run(session, statement, params, nparams, diag);
    if (status != STATUS_OK) {
        mysql_cache_drop(session, statement);
        return status;
    }
    result = mem_alloc(sizeof(*result));
    result->base.driver = &db_mysql_driver;
    result->session = session;
    result->statement = statement;
    result->next = session->open;
    result->last_saved = &result->saved;
    session->open = result;
    if (statement->ncells > 0)
        session->streaming = result;
    *rows = &result->base;
    return STATUS_OK;
}

static void shrink(struct mysql_statement *statement)
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

static void end(struct mysql_rows *rows)
{
    struct mysql_rows **at = &rows->session->open;

    if (rows->statement == NULL)
        return;
    while (*at != rows)
        at = &(*at)->next;
    *at = rows->next;
    if (rows->session->streaming == rows)
        rows->session->streaming = NULL;
    shrink(rows->statement);
    mysql_cache_give(rows->session, rows->statement);
    rows->statement = NULL;
    arena_free(&rows->arena);
}

void mysql_rows_end_all(struct db_session *session)
{
    while (session->open != NULL)
        end(session->open);
}

/* A text that did not fit is fetched again into a buffer of its size. */
static enum status fetch_long(struct mysql_rows *rows, struct diag *diag)
{
    struct mysql_statement *statement = rows->statement;
    bool grown = false;

    for (size_t i = 0; i < statement->ncells; i++) {
        struct mysql_cell *cell = &statement->cells[i];
        MYSQL_BIND *bind = &statement->binds[i];

        if (cell->is_null || cell->length <= cell->capacity ||
            bind->buffer != cell->buffer)
            continue;
        grow(cell, cell->length + cell->length / 4, bind);
        grown = true;
        if (mysql_stmt_fetch_column(statement->handle, bind, (unsigned)i, 0) !=
            0)
            return mysql_fault_statement(rows->session, statement->handle,
                                         diag);
    }
    /* the next row goes into the new buffers */
    if (grown &&
        mysql_stmt_bind_result(statement->handle, statement->binds) != 0)
        return mysql_fault_statement(rows->session, statement->handle, diag);
    return STATUS_OK;
}

/* The next row from the connection. */
static enum status fetch(struct mysql_rows *rows, bool *more, struct diag *diag)
{
    enum status status;
    int code = mysql_stmt_fetch(rows->statement->handle);

    *more = false;
    if (code == 0 || code == MYSQL_DATA_TRUNCATED) {
        status = fetch_long(rows, diag);
        *more = status == STATUS_OK;
        return status;
    }
    if (rows->session->streaming == rows)
        rows->session->streaming = NULL;
    if (code == MYSQL_NO_DATA)
        return STATUS_OK;
    return mysql_fault_statement(rows->session, rows->statement->handle, diag);
}

/* --- rows read ahead ------------------------------------------------------ */

static bool is_text(const struct mysql_cell *cell)
{
    return !is_integer(cell) && !is_double(cell) && !is_time(cell);
}

static void save(struct mysql_rows *rows)
{
    const struct mysql_statement *statement = rows->statement;
    struct mysql_saved *saved = arena_alloc(
        &rows->arena,
        sizeof(*saved) + statement->ncells * sizeof(struct saved_cell));

    saved->next = NULL;
    for (size_t i = 0; i < statement->ncells; i++) {
        const struct mysql_cell *cell = &statement->cells[i];
        struct text text = {cell->buffer, cell->length};
        bool copied = is_text(cell) && !cell->is_null;

        saved->cells[i] = (struct saved_cell){
            .value = cell->value,
            .text = copied ? arena_copy(&rows->arena, text).data : NULL,
            .length = cell->length,
            .is_null = cell->is_null,
        };
    }
    *rows->last_saved = saved;
    rows->last_saved = &saved->next;
}

static void load(struct mysql_rows *rows)
{
    const struct mysql_saved *saved = rows->saved;
    struct mysql_statement *statement = rows->statement;

    for (size_t i = 0; i < statement->ncells; i++) {
        struct mysql_cell *cell = &statement->cells[i];

        cell->value = saved->cells[i].value;
        cell->length = saved->cells[i].length;
        cell->is_null = saved->cells[i].is_null;
        if (saved->cells[i].text == NULL)
            continue;
        if (cell->capacity < cell->length || cell->buffer == NULL)
            grow(cell, cell->length + 1, &statement->binds[i]);
        memcpy(cell->buffer, saved->cells[i].text, cell->length);
    }
    rows->saved = saved->next;
}

/* The texts of the row in hand stay where they are: somebody may hold them. */
void mysql_rows_settle(struct db_session *session)
{
    struct mysql_rows *rows = session->streaming;
    struct mysql_statement *statement;
    struct mysql_cell *kept;
    bool more = true;
    size_t size;

    if (rows == NULL)
        return;
    statement = rows->statement;
    size = statement->ncells * sizeof(*kept);
    kept = mem_alloc(size);
    memcpy(kept, statement->cells, size);
    for (size_t i = 0; i < statement->ncells; i++) {
        statement->cells[i].buffer = NULL;
        statement->cells[i].capacity = 0;
        bind_cell(&statement->cells[i], &statement->binds[i]);
    }
    if (mysql_stmt_bind_result(statement->handle, statement->binds) != 0)
        rows->after = mysql_fault_statement(session, statement->handle,
                                            &rows->after_why);
    while (rows->after == STATUS_OK && more) {
        rows->after = fetch(rows, &more, &rows->after_why);
        if (rows->after == STATUS_OK && more)
            save(rows);
    }
    session->streaming = NULL;
    for (size_t i = 0; i < statement->ncells; i++)
        mem_free(statement->cells[i].buffer);
    memcpy(statement->cells, kept, size);
    mem_free(kept);
}

enum status mysql_rows_next(struct db_rows *rows, bool *more, struct diag *diag)
{
    struct mysql_rows *result = own(rows);
    enum status status;

    *more = false;
    if (result->ended ||
        (result->statement != NULL && result->statement->ncells == 0))
        return STATUS_OK;
    if (result->statement == NULL)
        return diag_set(diag, STATUS_PERMANENT,
                        "the result ended with its transaction");
    if (result->session->streaming == result) {
        status = fetch(result, more, diag);
    } else if (result->saved != NULL) {
        load(result);
        *more = true;
        return STATUS_OK;
    } else {
        status = result->after;
        if (status != STATUS_OK && diag != NULL)
            *diag = result->after_why;
    }
    result->ended = !*more;
    return status;
}

void mysql_rows_close(struct db_rows *rows)
{
    end(own(rows));
    mem_free(rows);
}

size_t mysql_rows_columns(const struct db_rows *rows)
{
    const struct mysql_rows *mine = (const struct mysql_rows *)rows;

    return mine->statement != NULL ? mine->statement->ncells - mine->hidden : 0;
}

const char *mysql_rows_column_name(const struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);

    return cell != NULL ? cell->name : "";
}

/* --- values --------------------------------------------------------------- */

static struct text text_of_cell(const struct mysql_cell *cell)
{
    return (struct text){cell->buffer, cell->length};
}

static bool beyond_64_bits(const struct mysql_cell *cell)
{
    return cell->is_unsigned && cell->value.integer < 0;
}

/* Whole numbers come as DECIMAL from a sum, and as BIT from a flag. */
static bool as_integer(const struct mysql_cell *cell, int64_t *value)
{
    struct text text = text_of_cell(cell);
    bool negative = cell->decimal && text.len > 0 && text.data[0] == '-';

    *value = 0;
    if (is_integer(cell)) {
        *value = cell->value.integer;
        return !beyond_64_bits(cell);
    }
    if (cell->type == MYSQL_TYPE_BIT && text.len <= 7) {
        for (size_t i = 0; i < text.len; i++)
            *value = *value << 8 | (unsigned char)text.data[i];
        return true;
    }
    if (!cell->decimal || text.len == 0)
        return false;
    for (size_t i = negative ? 1 : 0; i < text.len; i++) {
        int digit = text.data[i] - '0';

        if (digit < 0 || digit > 9 ||
            __builtin_mul_overflow(*value, 10, value) ||
            __builtin_sub_overflow(*value, digit, value))
            return false;
    }
    /* built below zero, where the smallest number has its place */
    return negative || !__builtin_sub_overflow(INT64_C(0), *value, value);
}

enum db_type mysql_rows_column_type(const struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);
    int64_t value;

    if (cell == NULL || cell->is_null || cell->type == MYSQL_TYPE_NULL)
        return DB_NULL;
    if (as_integer(cell, &value))
        return DB_INT64;
    if (cell->decimal || is_integer(cell))
        return DB_DECIMAL;
    if (is_double(cell))
        return DB_DOUBLE;
    if (is_time(cell))
        return DB_TIMESTAMP;
    return cell->binary ? DB_BYTES : DB_TEXT;
}

int64_t mysql_rows_get_int64(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);
    int64_t value = 0;

    if (cell == NULL || cell->is_null || !as_integer(cell, &value)) {
        db_rows_mismatch(rows, column, "an integer");
        return 0;
    }
    return value;
}

double mysql_rows_get_double(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);
    int64_t value;

    if (cell != NULL && !cell->is_null) {
        if (is_double(cell))
            return cell->value.number;
        if (as_integer(cell, &value))
            return (double)value;
        if (cell->decimal)
            return strtod(cell->buffer, NULL);
    }
    db_rows_mismatch(rows, column, "a number");
    return 0;
}

bool mysql_rows_get_bool(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);
    int64_t value = 2;

    if (cell == NULL || cell->is_null || !as_integer(cell, &value) ||
        (value != 0 && value != 1))
        db_rows_mismatch(rows, column, "a boolean (0 or 1)");
    return value == 1;
}

/* Days since 1970 of the Gregorian calendar, by eras of 400 years. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day -
                          1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 -
           year_of_era / 100 + day_of_year - 719468;
}

static int64_t time_of(const MYSQL_TIME *time)
{
    int64_t seconds = days_of(time->year, time->month, time->day) * 86400 +
                      (int64_t)time->hour * 3600 + (int64_t)time->minute * 60 +
                      time->second;

    return seconds * CLOCK_SECOND + (int64_t)time->second_part;
}

struct text mysql_rows_get_text(struct db_rows *rows, size_t column)
{
    struct mysql_cell *cell = cell_of(rows, column);

    if (cell == NULL || cell->is_null || cell->type == MYSQL_TYPE_NULL)
        return TEXT_NONE;
    if (is_time(cell)) {
        clock_format(time_of(&cell->value.time), cell->shown);
        return text_of(cell->shown);
    }
    if (is_integer(cell) && beyond_64_bits(cell)) {
        (void)snprintf(cell->shown, sizeof(cell->shown), "%" PRIu64,
                       (uint64_t)cell->value.integer);
        return text_of(cell->shown);
    }
    if (is_integer(cell) || is_double(cell)) {
        db_rows_mismatch(rows, column, "text");
        return TEXT_NONE;
    }
    return text_of_cell(cell);
}

int64_t mysql_rows_get_timestamp(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);

    if (cell == NULL || cell->is_null || !is_time(cell)) {
        db_rows_mismatch(rows, column, "a time");
        return 0;
    }
    return time_of(&cell->value.time);
}

struct uuid mysql_rows_get_uuid(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = cell_of(rows, column);
    struct uuid uuid = {{0}};

    if (cell == NULL || cell->is_null || is_integer(cell) || is_double(cell) ||
        is_time(cell) || !uuid_parse(text_of_cell(cell), &uuid))
        db_rows_mismatch(rows, column, "a UUID");
    return uuid;
}
