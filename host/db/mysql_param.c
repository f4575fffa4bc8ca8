#include "db/mysql_session.h"

#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define ROW_OVERHEAD 16 /* bytes of a value in a packet besides its text */

static enum status refuse(unsigned number, const char *why, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT, "parameter %u %s", number + 1, why);
}

static enum status check_text(struct text text, enum db_origin origin,
                              unsigned number, struct diag *diag)
{
    if (text.len == 0)
        return STATUS_OK;
    if (memchr(text.data, '\0', text.len) != NULL)
        return refuse(number, "is text with a NUL byte in it", diag);
    /* the host's own text was checked where it came in */
    if (origin != DB_HOST && !text_utf8_valid(text))
        return refuse(number, "is text that is not valid UTF-8", diag);
    return STATUS_OK;
}

/* --- values that travel as text ------------------------------------------- */

static struct text write_integers(struct arena *arena,
                                  const struct db_value *value)
{
    struct buffer out = BUFFER_EMPTY;
    struct text copy;

    buffer_append_char(&out, '[');
    for (size_t i = 0; i < value->as.integers.count; i++)
        buffer_printf(&out, "%s%" PRId64, i > 0 ? "," : "",
                      value->as.integers.items[i]);
    buffer_append_char(&out, ']');
    copy = arena_copy(arena, buffer_text(&out));
    buffer_free(&out);
    return copy;
}

static enum status write_texts(struct arena *arena,
                               const struct db_value *value, unsigned number,
                               struct text *copy, struct diag *diag)
{
    struct buffer out = BUFFER_EMPTY;
    enum status status = STATUS_OK;

    buffer_append_char(&out, '[');
    for (size_t i = 0; status == STATUS_OK && i < value->as.texts.count; i++) {
        struct text item = value->as.texts.items[i];

        status = check_text(item, DB_SCRIPT, number, diag);
        if (i > 0)
            buffer_append_char(&out, ',');
        if (item.data == NULL)
            buffer_append_string(&out, "null");
        else if (status == STATUS_OK)
            json_write_string(&out, item);
    }
    buffer_append_char(&out, ']');
    *copy = arena_copy(arena, buffer_text(&out));
    buffer_free(&out);
    return status;
}

static struct text write_uuid(struct arena *arena, const struct uuid *uuid)
{
    char *text = arena_alloc(arena, UUID_TEXT_LEN + 1);

    uuid_format(uuid, text);
    return (struct text){text, UUID_TEXT_LEN};
}

/* YYYY-MM-DD HH:MM:SS.ffffff, which the server reads in the session's zone,
 * UTC. */
static struct text write_timestamp(struct arena *arena, int64_t time_us)
{
    char *text = arena_alloc(arena, CLOCK_TEXT_SIZE);

    clock_format(time_us, text);
    text[10] = ' ';
    return (struct text){text, CLOCK_TEXT_SIZE - 2};
}

static struct text write_number(struct arena *arena,
                                const struct db_value *value)
{
    char text[64];

    if (value->type == DB_DOUBLE)
        (void)snprintf(text, sizeof(text), "%.17g", value->as.number);
    else if (value->type == DB_BOOL)
        (void)snprintf(text, sizeof(text), "%d", value->as.boolean);
    else
        (void)snprintf(text, sizeof(text), "%" PRId64, value->as.integer);
    return arena_copy(arena, text_of(text));
}

static enum status to_text(struct db_session *session, enum db_origin origin,
                           const struct db_value *value, unsigned number,
                           struct text *text, struct diag *diag)
{
    struct arena *arena = &session->params;

    switch (value->type) {
    case DB_TEXT:
        *text = value->as.text;
        return check_text(*text, origin, number, diag);
    case DB_BYTES:
    case DB_DECIMAL:
        *text = value->as.text;
        return STATUS_OK;
    case DB_TIMESTAMP:
        *text = write_timestamp(arena, value->as.integer);
        return STATUS_OK;
    case DB_UUID:
        *text = write_uuid(arena, &value->as.uuid);
        return STATUS_OK;
    case DB_INT64_ARRAY:
        *text = write_integers(arena, value);
        return STATUS_OK;
    case DB_TEXT_ARRAY:
        return write_texts(arena, value, number, text, diag);
    case DB_INT64:
    case DB_DOUBLE:
    case DB_BOOL:
        *text = write_number(arena, value);
        return STATUS_OK;
    case DB_NULL:
        break;
    }
    *text = TEXT_NONE;
    return STATUS_OK;
}

static enum status check_number(const struct db_value *value, unsigned number,
                                struct diag *diag)
{
    if (value->type == DB_DOUBLE && !isfinite(value->as.number))
        return refuse(number, "is not a finite number", diag);
    return STATUS_OK;
}

static enum enum_field_types text_type(enum db_type type)
{
    return type == DB_BYTES ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
}

/* --- one execution -------------------------------------------------------- */

static enum status bind_value(struct db_session *session, enum db_origin origin,
                              const struct db_value *value, unsigned number,
                              MYSQL_BIND *bind, struct diag *diag)
{
    struct text text;
    signed char *flag;
    enum status status = check_number(value, number, diag);

    switch (value->type) {
    case DB_NULL:
        bind->buffer_type = MYSQL_TYPE_NULL;
        return STATUS_OK;
    case DB_INT64:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = (void *)&value->as.integer;
        return STATUS_OK;
    case DB_DOUBLE:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        bind->buffer = (void *)&value->as.number;
        return status;
    case DB_BOOL:
        flag = arena_alloc(&session->params, 1);
        *flag = value->as.boolean;
        bind->buffer_type = MYSQL_TYPE_TINY;
        bind->buffer = flag;
        return STATUS_OK;
    default:
        break;
    }
    status = to_text(session, origin, value, number, &text, diag);
    bind->buffer_type = text_type(value->type);
    bind->buffer = (void *)(text.data != NULL ? text.data : "");
    bind->buffer_length = text.len;
    return status;
}

uint64_t mysql_param_size(const struct db_value *value)
{
    uint64_t size = ROW_OVERHEAD;

    switch (value->type) {
    case DB_TEXT:
    case DB_BYTES:
    case DB_DECIMAL:
        return size + value->as.text.len;
    case DB_UUID:
    case DB_TIMESTAMP:
        return size + UUID_TEXT_LEN;
    case DB_INT64_ARRAY:
        return size + value->as.integers.count * 21;
    case DB_TEXT_ARRAY:
        for (size_t i = 0; i < value->as.texts.count; i++)
            size += value->as.texts.items[i].len + 5;
        return size;
    default:
        return size;
    }
}

enum status mysql_param_bind(struct db_session *session,
                             struct mysql_statement *statement,
                             const struct db_value *params, size_t nparams,
                             struct diag *diag)
{
    const struct mysql_marks *marks = &statement->marks;
    uint64_t size = ROW_OVERHEAD;
    MYSQL_BIND *binds;

    if (marks->nparams != nparams)
        return diag_set(diag, STATUS_PERMANENT,
                        "the statement has %zu parameters, but %zu values were "
                        "given",
                        marks->nparams, nparams);
    arena_reset(&session->params);
    if (nparams == 0)
        return STATUS_OK;
    binds = arena_alloc_zero(&session->params, marks->count * sizeof(*binds));
    for (size_t i = 0; i < marks->count; i++) {
        unsigned number = marks->numbers[i];
        enum status status = bind_value(session, statement->origin,
                                        &params[number], number, &binds[i],
                                        diag);

        if (status != STATUS_OK)
            return status;
        size += binds[i].buffer_length + ROW_OVERHEAD;
    }
    if (size > session->packet_max)
        return mysql_fault_size(session, "a statement with its values", size,
                                diag);
    if (mysql_stmt_bind_param(statement->handle, binds) != 0)
        return mysql_fault_statement(session, statement->handle, diag);
    return STATUS_OK;
}

/* --- many rows ------------------------------------------------------------ */

struct column {
    struct db_session *session;
    const struct db_value *values; /* of the first row */
    size_t nrows;
    size_t stride;
    unsigned number;
    enum db_origin origin;
};

static const struct db_value *row_of(const struct column *column, size_t row)
{
    return &column->values[row * column->stride];
}

/* One type for the whole column: that of its values when they agree, else
 * text, which holds every one of them exactly. */
static enum db_type common_type(const struct column *column)
{
    enum db_type common = DB_NULL;

    for (size_t i = 0; i < column->nrows; i++) {
        enum db_type type = row_of(column, i)->type;

        if (type == DB_NULL || type == common)
            continue;
        if (common != DB_NULL)
            return DB_TEXT;
        common = type;
    }
    return common == DB_NULL ? DB_TEXT : common;
}

static void mark_nulls(const struct column *column, MYSQL_BIND *bind)
{
    char *indicators = arena_alloc(&column->session->params, column->nrows);

    for (size_t i = 0; i < column->nrows; i++)
        indicators[i] = row_of(column, i)->type == DB_NULL
                            ? STMT_INDICATOR_NULL
                            : STMT_INDICATOR_NONE;
    bind->u.indicator = indicators;
}

static enum status bind_texts(const struct column *column, enum db_type type,
                              MYSQL_BIND *bind, struct diag *diag)
{
    struct arena *arena = &column->session->params;
    const char **texts = arena_alloc(arena, column->nrows * sizeof(*texts));
    unsigned long *lengths = arena_alloc(arena,
                                         column->nrows * sizeof(*lengths));

    for (size_t i = 0; i < column->nrows; i++) {
        const struct db_value *value = row_of(column, i);
        struct text text;
        enum status status = check_number(value, column->number, diag);

        if (status == STATUS_OK)
            status = to_text(column->session, column->origin, value,
                             column->number, &text, diag);
        if (status != STATUS_OK)
            return status;
        texts[i] = text.data != NULL ? text.data : "";
        lengths[i] = text.len;
    }
    bind->buffer_type = text_type(type);
    bind->buffer = texts;
    bind->length = lengths;
    return STATUS_OK;
}

static enum status bind_numbers(const struct column *column, enum db_type type,
                                MYSQL_BIND *bind, struct diag *diag)
{
    /* all three arrays have the same layout: values of 8 bytes or of one */
    int64_t *integers = arena_alloc(&column->session->params,
                                    column->nrows * sizeof(*integers));
    double *numbers = (double *)integers;
    signed char *flags = (signed char *)integers;

    for (size_t i = 0; i < column->nrows; i++) {
        const struct db_value *value = row_of(column, i);
        enum status status = check_number(value, column->number, diag);

        if (status != STATUS_OK)
            return status;
        if (type == DB_INT64)
            integers[i] = value->type == DB_NULL ? 0 : value->as.integer;
        else if (type == DB_DOUBLE)
            numbers[i] = value->type == DB_NULL ? 0 : value->as.number;
        else
            flags[i] = value->type != DB_NULL && value->as.boolean;
    }
    bind->buffer_type = type == DB_INT64    ? MYSQL_TYPE_LONGLONG
                        : type == DB_DOUBLE ? MYSQL_TYPE_DOUBLE
                                            : MYSQL_TYPE_TINY;
    bind->buffer = integers;
    return STATUS_OK;
}

enum status mysql_param_bind_rows(struct db_session *session,
                                  struct mysql_statement *statement,
                                  const struct db_value *values, size_t nrows,
                                  size_t ncolumns, const size_t *order,
                                  struct diag *diag)
{
    size_t nmarks = statement->marks.count;
    unsigned array_size = (unsigned)nrows;
    MYSQL_BIND *binds;

    arena_reset(&session->params);
    binds = arena_alloc_zero(&session->params, nmarks * sizeof(*binds));
    for (size_t i = 0; i < nmarks; i++) {
        struct column column = {.session = session,
                                .values = values + order[i],
                                .nrows = nrows,
                                .stride = ncolumns,
                                .number = (unsigned)order[i],
                                .origin = statement->origin};
        enum db_type type = common_type(&column);
        bool numbers = type == DB_INT64 || type == DB_DOUBLE || type == DB_BOOL;
        enum status status = numbers
                                 ? bind_numbers(&column, type, &binds[i], diag)
                                 : bind_texts(&column, type, &binds[i], diag);

        if (status != STATUS_OK)
            return status;
        mark_nulls(&column, &binds[i]);
    }
    (void)mysql_stmt_attr_set(statement->handle, STMT_ATTR_ARRAY_SIZE,
                              &array_size);
    if (mysql_stmt_bind_param(statement->handle, binds) != 0)
        return mysql_fault_statement(session, statement->handle, diag);
    return STATUS_OK;
}
