#include "db/mysql_cell.h"

#include "base/memory.h"

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
        mysql_cell_free_all(statement); /* a statement that only writes */
        return STATUS_OK;
    }
    return mysql_cell_bind_result(session, statement, diag);
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

static void end(struct mysql_rows *rows)
{
    struct mysql_rows **at = &rows->session->open;

    if (rows->statement == NULL)
        return;
    /* freed is what is on its way, whosever it is */
    if (rows->session->streaming != rows)
        mysql_rows_settle(rows->session);
    while (*at != rows)
        at = &(*at)->next;
    *at = rows->next;
    if (rows->session->streaming == rows)
        rows->session->streaming = NULL;
    mysql_cell_shrink(rows->statement);
    mysql_cache_give(rows->session, rows->statement);
    rows->statement = NULL;
    arena_free(&rows->arena);
}

void mysql_rows_end_all(struct db_session *session)
{
    if (session->streaming != NULL)
        end(session->streaming);
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
        mysql_cell_grow(cell, cell->length + cell->length / 4, bind);
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
        bool copied = mysql_cell_is_text(cell) && !cell->is_null;

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
            mysql_cell_grow(cell, cell->length + 1, &statement->binds[i]);
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
        mysql_cell_bind(&statement->cells[i], &statement->binds[i]);
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

    return mine->statement != NULL ? mine->statement->ncells : 0;
}

const char *mysql_rows_column_name(const struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);

    return cell != NULL ? cell->name : "";
}
