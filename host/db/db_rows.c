#include "db/db_core.h"

#include "base/buffer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum status db_query(struct db *db, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams,
                     struct db_rows **rows, struct diag *diag)
{
    enum status status;

    *rows = NULL;
    diag = db_core_diag(db, diag);
    if (!db->in_transaction && db->driver->announced != NULL &&
        db_core_ready(db, diag) == STATUS_OK)
        *rows = db->driver->announced(db->session, sql, params, nparams);
    if (*rows != NULL) {
        (*rows)->db = db;
        return STATUS_OK;
    }
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    if (sql->origin == DB_SCRIPT) /* INSERT ... RETURNING is a query, too */
        queue_skip(&db->queue);
    status = db->driver->query(db->session, sql, params, nparams, rows, diag);
    if (status == STATUS_OK)
        (*rows)->db = db;
    return db_core_settle(db, status, diag);
}

void db_announce(struct db *db, const struct db_sql *sql,
                 const struct db_value *params, size_t nparams)
{
    if (db->driver->announce != NULL && db->in_transaction && !db->doomed)
        db->driver->announce(db->session, sql, params, nparams);
}

void db_withdraw(struct db *db)
{
    assert(!db->in_transaction);
    if (db->driver->withdraw != NULL)
        db->driver->withdraw(db->session);
}

/* A cell in words, as far as it can be shown: cut, and printable. */
#define CELL_SIZE 64

static void describe_cell(struct db_rows *rows, size_t column, char *out)
{
    switch (rows->driver->column_type(rows, column)) {
    case DB_NULL:
        snprintf(out, CELL_SIZE, "NULL");
        return;
    case DB_INT64:
        snprintf(out, CELL_SIZE, "%" PRId64,
                 rows->driver->get_int64(rows, column));
        return;
    case DB_TEXT: {
        char clean[CELL_SIZE - 2];

        text_clean(rows->driver->get_text(rows, column), clean, sizeof(clean));
        snprintf(out, CELL_SIZE, "'%s'", clean);
        return;
    }
    default:
        snprintf(out, CELL_SIZE, "something else");
    }
}

/* Columns that come first tell which row it is: enough to find it by hand. */
#define COLUMNS_TOLD 3

static void describe_row(struct db_rows *rows, struct buffer *out)
{
    size_t count = rows->driver->columns(rows) - rows->hidden;
    size_t told = 0;
    char cell[CELL_SIZE];

    for (size_t i = 0; i < count && told < COLUMNS_TOLD; i++) {
        if (i == rows->mismatch_column)
            continue;
        describe_cell(rows, i, cell);
        buffer_printf(out, "%s%s = %s", told++ == 0 ? ", in the row of " : ", ",
                      rows->driver->column_name(rows, i), cell);
    }
}

/* The row is still the one in hand: whoever changed it by hand must find it. */
enum status db_rows_mismatch_error(struct db_rows *rows, struct diag *diag)
{
    struct buffer row = BUFFER_EMPTY;
    char cell[CELL_SIZE];
    enum status status;

    describe_cell(rows, rows->mismatch_column, cell);
    buffer_append_string(&row, "");
    describe_row(rows, &row);
    status = diag_set(diag, STATUS_PERMANENT,
                      "column \"%s\" of the result holds %s and not %s%s",
                      rows->driver->column_name(rows, rows->mismatch_column),
                      cell, rows->mismatch_wanted, row.data);
    buffer_free(&row);
    return status;
}

enum status db_next(struct db_rows *rows, bool *more, struct diag *diag)
{
    struct db *db = rows->db;
    enum status status;

    *more = false;
    diag = db_core_diag(db, diag);
    if (rows->mismatch) {
        status = db_rows_mismatch_error(rows, diag);
        rows->mismatch = false;
        return db_core_settle(db, status, diag);
    }
    status = db_core_ready(db, diag);
    if (status != STATUS_OK)
        return status;
    status = rows->driver->next(rows, more, diag);
    return status == STATUS_OK ? STATUS_OK : db_core_settle(db, status, diag);
}

void db_rows_close(struct db_rows *rows)
{
    if (rows == NULL)
        return;
    /* nobody asked for the next row: the transaction must not go on with a
     * zero that was never in the database */
    if (rows->mismatch)
        (void)db_core_settle(rows->db,
                             db_rows_mismatch_error(rows, &rows->db->unseen),
                             &rows->db->unseen);
    rows->driver->rows_close(rows);
}

enum status db_rows_each(struct db *db, const struct db_sql *sql,
                         const struct db_value *params, size_t nparams,
                         db_row_fn fn, void *arg, struct diag *diag)
{
    struct db_rows *rows;
    bool more = true;
    enum status status = db_query(db, sql, params, nparams, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while (status == STATUS_OK && more) {
        status = db_next(rows, &more, diag);
        if (status == STATUS_OK && more)
            status = fn(arg, rows, diag);
    }
    db_rows_close(rows);
    return status;
}

size_t db_columns(const struct db_rows *rows)
{
    return rows->driver->columns(rows) - rows->hidden;
}

const char *db_column_name(const struct db_rows *rows, size_t column)
{
    return rows->driver->column_name(rows, column);
}

enum db_type db_column_type(const struct db_rows *rows, size_t column)
{
    return rows->driver->column_type(rows, column);
}

bool db_is_null(const struct db_rows *rows, size_t column)
{
    return rows->driver->column_type(rows, column) == DB_NULL;
}

int64_t db_get_int64(struct db_rows *rows, size_t column)
{
    return rows->driver->get_int64(rows, column);
}

double db_get_double(struct db_rows *rows, size_t column)
{
    return rows->driver->get_double(rows, column);
}

bool db_get_bool(struct db_rows *rows, size_t column)
{
    return rows->driver->get_bool(rows, column);
}

struct text db_get_text(struct db_rows *rows, size_t column)
{
    return rows->driver->get_text(rows, column);
}

int64_t db_get_timestamp(struct db_rows *rows, size_t column)
{
    return rows->driver->get_timestamp(rows, column);
}

struct uuid db_get_uuid(struct db_rows *rows, size_t column)
{
    return rows->driver->get_uuid(rows, column);
}

enum status db_query_int64(struct db *db, const struct db_sql *sql,
                           const struct db_value *params, size_t nparams,
                           int64_t *value, bool *found, struct diag *diag)
{
    struct db_rows *rows;
    enum status status;
    bool more;

    *value = 0;
    *found = false;
    status = db_query(db, sql, params, nparams, &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = db_next(rows, &more, diag);
    if (status == STATUS_OK && more && !db_is_null(rows, 0)) {
        *value = db_get_int64(rows, 0);
        *found = true;
    }
    /* also what a wrong type, or an error after the row, is reported by */
    if (status == STATUS_OK && more)
        status = db_next(rows, &more, diag);
    db_rows_close(rows);
    return status;
}
