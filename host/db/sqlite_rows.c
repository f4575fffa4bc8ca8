#include "db/sqlite.h"

#include "base/clock.h"
#include "base/memory.h"

static struct sqlite_rows *own(struct db_rows *rows)
{
    return (struct sqlite_rows *)rows;
}

static sqlite3_stmt *handle_of(const struct db_rows *rows)
{
    const struct sqlite_rows *own_rows = (const struct sqlite_rows *)rows;

    return own_rows->statement != NULL ? own_rows->statement->handle : NULL;
}

enum status sqlite_rows_query(struct db_session *session,
                              const struct db_sql *sql,
                              const struct db_value *params, size_t nparams,
                              struct db_rows **rows, struct diag *diag)
{
    struct sqlite_statement *statement;
    struct sqlite_rows *result;
    enum status status;

    status = sqlite_cache_take(session, sql, &statement, diag);
    if (status != STATUS_OK)
        return status;
    status = sqlite_statement_bind_all(session, statement, params, nparams,
                                       true, diag);
    if (status != STATUS_OK) {
        sqlite_cache_give(session, statement);
        return status;
    }
    session->round_trips++;
    result = mem_alloc(sizeof(*result));
    result->base.driver = &db_sqlite_driver;
    result->session = session;
    result->statement = statement;
    result->next = session->open;
    session->open = result;
    *rows = &result->base;
    return STATUS_OK;
}

/* Gives the statement back, so that its snapshot goes. */
static void end(struct sqlite_rows *rows)
{
    struct sqlite_rows **at = &rows->session->open;

    if (rows->statement == NULL)
        return;
    while (*at != rows)
        at = &(*at)->next;
    *at = rows->next;
    sqlite_cache_give(rows->session, rows->statement);
    rows->statement = NULL;
}

void sqlite_rows_end_all(struct db_session *session)
{
    while (session->open != NULL)
        end(session->open);
}

enum status sqlite_rows_next(struct db_rows *rows, bool *more,
                             struct diag *diag)
{
    struct sqlite_rows *result = own(rows);
    struct db_session *session = result->session;
    enum status status;
    int code;

    *more = false;
    if (result->ended)
        return STATUS_OK;
    if (result->statement == NULL)
        return diag_set(diag, STATUS_PERMANENT,
                        "the result ended with its transaction");
    session->origin = result->statement->origin;
    code = sqlite3_step(result->statement->handle);
    if (code == SQLITE_ROW) {
        *more = true;
        return STATUS_OK;
    }
    result->ended = true;
    if (code == SQLITE_DONE) {
        end(result);
        return STATUS_OK;
    }
    status = session->denied != NULL ? sqlite_cache_denied(session, diag)
                                     : sqlite_error(session, code, diag);
    end(result);
    return status;
}

void sqlite_rows_close(struct db_rows *rows)
{
    end(own(rows));
    mem_free(rows);
}

/* --- values -------------------------------------------------------------- */

/* SQLite answers with NULL for a column that is not there, and for every
 * column when there is no row; both are the caller's mistakes. */

size_t sqlite_rows_columns(const struct db_rows *rows)
{
    sqlite3_stmt *handle = handle_of(rows);

    return handle != NULL ? (size_t)sqlite3_column_count(handle) : 0;
}

const char *sqlite_rows_column_name(const struct db_rows *rows, size_t column)
{
    sqlite3_stmt *handle = handle_of(rows);
    const char *name = handle != NULL ? sqlite3_column_name(handle, (int)column)
                                      : NULL;

    return name != NULL ? name : "";
}

static int stored_type(const struct db_rows *rows, size_t column)
{
    sqlite3_stmt *handle = handle_of(rows);

    return handle != NULL ? sqlite3_column_type(handle, (int)column)
                          : SQLITE_NULL;
}

enum db_type sqlite_rows_column_type(const struct db_rows *rows, size_t column)
{
    switch (stored_type(rows, column)) {
    case SQLITE_INTEGER:
        return DB_INT64;
    case SQLITE_FLOAT:
        return DB_DOUBLE;
    case SQLITE_TEXT:
        return DB_TEXT;
    case SQLITE_BLOB:
        return DB_BYTES;
    default:
        return DB_NULL;
    }
}

int64_t sqlite_rows_get_int64(struct db_rows *rows, size_t column)
{
    if (stored_type(rows, column) != SQLITE_INTEGER) {
        db_rows_mismatch(rows, column, "an integer");
        return 0;
    }
    return sqlite3_column_int64(handle_of(rows), (int)column);
}

double sqlite_rows_get_double(struct db_rows *rows, size_t column)
{
    int type = stored_type(rows, column);

    if (type != SQLITE_FLOAT && type != SQLITE_INTEGER) {
        db_rows_mismatch(rows, column, "a number");
        return 0;
    }
    return sqlite3_column_double(handle_of(rows), (int)column);
}

bool sqlite_rows_get_bool(struct db_rows *rows, size_t column)
{
    int64_t value = 2;

    if (stored_type(rows, column) == SQLITE_INTEGER)
        value = sqlite3_column_int64(handle_of(rows), (int)column);
    if (value != 0 && value != 1)
        db_rows_mismatch(rows, column, "a boolean (0 or 1)");
    return value == 1;
}

struct text sqlite_rows_get_text(struct db_rows *rows, size_t column)
{
    sqlite3_stmt *handle = handle_of(rows);
    int type = stored_type(rows, column);
    const char *data;

    if (type == SQLITE_NULL)
        return TEXT_NONE;
    if (type == SQLITE_TEXT) {
        data = (const char *)sqlite3_column_text(handle, (int)column);
    } else if (type == SQLITE_BLOB) {
        data = sqlite3_column_blob(handle, (int)column);
    } else {
        db_rows_mismatch(rows, column, "text");
        return TEXT_NONE;
    }
    /* an empty value has no address of its own */
    return (struct text){data != NULL ? data : "",
                         (size_t)sqlite3_column_bytes(handle, (int)column)};
}

static struct text stored_text(struct db_rows *rows, size_t column)
{
    return stored_type(rows, column) == SQLITE_TEXT
               ? sqlite_rows_get_text(rows, column)
               : TEXT_NONE;
}

int64_t sqlite_rows_get_timestamp(struct db_rows *rows, size_t column)
{
    struct text text = stored_text(rows, column);
    int64_t time_us = 0;

    if (text.data == NULL || clock_parse(text, &time_us, NULL) != STATUS_OK)
        db_rows_mismatch(rows, column,
                         "a time like "
                         "2026-01-31T08:15:00.000000Z");
    return time_us;
}

struct uuid sqlite_rows_get_uuid(struct db_rows *rows, size_t column)
{
    struct text text = stored_text(rows, column);
    struct uuid uuid = {{0}};

    if (text.data == NULL || !uuid_parse(text, &uuid))
        db_rows_mismatch(rows, column, "a UUID");
    return uuid;
}
