#include "db/sqlite.h"

#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>

/* --- parameters ---------------------------------------------------------- */

static enum status refuse(int index, const char *why, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT, "parameter %d %s", index, why);
}

static enum status check_text(struct text text, enum db_origin origin,
                              int index, struct diag *diag)
{
    if (text.len == 0)
        return STATUS_OK;
    if (memchr(text.data, '\0', text.len) != NULL)
        return refuse(index, "is text with a NUL byte in it", diag);
    /* the host's own text was checked where it came in */
    if (origin != DB_HOST && !text_utf8_valid(text))
        return refuse(index, "is text that is not valid UTF-8", diag);
    return STATUS_OK;
}

static int bind_text(sqlite3_stmt *handle, int index, struct text text,
                     bool copy)
{
    return sqlite3_bind_text64(
        handle, index, text.data != NULL ? text.data : "", text.len,
        copy ? SQLITE_TRANSIENT : SQLITE_STATIC, SQLITE_UTF8);
}

static int bind_bytes(sqlite3_stmt *handle, int index, struct text bytes,
                      bool copy)
{
    return sqlite3_bind_blob64(handle, index,
                               bytes.data != NULL ? bytes.data : "", bytes.len,
                               copy ? SQLITE_TRANSIENT : SQLITE_STATIC);
}

static void write_integers(struct buffer *out, const struct db_value *value)
{
    buffer_clear(out);
    buffer_append_char(out, '[');
    for (size_t i = 0; i < value->as.integers.count; i++)
        buffer_printf(out, "%s%" PRId64, i > 0 ? "," : "",
                      value->as.integers.items[i]);
    buffer_append_char(out, ']');
}

static enum status write_texts(struct buffer *out, const struct db_value *value,
                               int index, struct diag *diag)
{
    buffer_clear(out);
    buffer_append_char(out, '[');
    for (size_t i = 0; i < value->as.texts.count; i++) {
        struct text item = value->as.texts.items[i];
        enum status status = check_text(item, DB_SCRIPT, index, diag);

        if (status != STATUS_OK)
            return status;
        if (i > 0)
            buffer_append_char(out, ',');
        if (item.data == NULL)
            buffer_append_string(out, "null");
        else
            json_write_string(out, item);
    }
    buffer_append_char(out, ']');
    return STATUS_OK;
}

static int bind_timestamp(sqlite3_stmt *handle, int index, int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    return sqlite3_bind_text(handle, index, text, CLOCK_TEXT_SIZE - 1,
                             SQLITE_TRANSIENT);
}

/* A decimal column is an integer of the smallest unit: the point goes. */
static int bind_decimal(sqlite3_stmt *handle, int index, struct text decimal)
{
    int64_t units = 0;
    bool negative = decimal.len > 0 && decimal.data[0] == '-';

    for (size_t i = negative ? 1 : 0; i < decimal.len; i++) {
        if (decimal.data[i] == '.')
            continue;
        if (__builtin_mul_overflow(units, 10, &units) ||
            __builtin_add_overflow(units, decimal.data[i] - '0', &units))
            return SQLITE_TOOBIG;
    }
    return sqlite3_bind_int64(handle, index, negative ? -units : units);
}

static int bind_uuid(sqlite3_stmt *handle, int index, const struct uuid *uuid)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(uuid, text);
    return sqlite3_bind_text(handle, index, text, UUID_TEXT_LEN,
                             SQLITE_TRANSIENT);
}

enum status sqlite_statement_bind(struct db_session *session,
                                  struct sqlite_statement *statement, int index,
                                  const struct db_value *value, bool copy,
                                  struct diag *diag)
{
    sqlite3_stmt *handle = statement->handle;
    enum status status = STATUS_OK;
    int code = SQLITE_OK;

    switch (value->type) {
    case DB_NULL:
        code = sqlite3_bind_null(handle, index);
        break;
    case DB_INT64:
        code = sqlite3_bind_int64(handle, index, value->as.integer);
        break;
    case DB_DOUBLE:
        if (value->as.number != value->as.number) /* stored as NULL */
            return refuse(index, "is not a number (NaN)", diag);
        code = sqlite3_bind_double(handle, index, value->as.number);
        break;
    case DB_BOOL:
        code = sqlite3_bind_int(handle, index, value->as.boolean ? 1 : 0);
        break;
    case DB_TEXT:
        status = check_text(value->as.text, statement->origin, index, diag);
        if (status == STATUS_OK)
            code = bind_text(handle, index, value->as.text, copy);
        break;
    case DB_DECIMAL:
        code = bind_decimal(handle, index, value->as.text);
        break;
    case DB_BYTES:
        code = bind_bytes(handle, index, value->as.text, copy);
        break;
    case DB_TIMESTAMP:
        if (value->as.integer < CLOCK_MIN || value->as.integer > CLOCK_MAX)
            return refuse(index, "is a time outside of the years 0000 to 9999",
                          diag);
        code = bind_timestamp(handle, index, value->as.integer);
        break;
    case DB_UUID:
        code = bind_uuid(handle, index, &value->as.uuid);
        break;
    case DB_INT64_ARRAY:
        write_integers(&session->arrays, value);
        code = bind_text(handle, index, buffer_text(&session->arrays), true);
        break;
    case DB_TEXT_ARRAY:
        status = write_texts(&session->arrays, value, index, diag);
        if (status == STATUS_OK)
            code = bind_text(handle, index, buffer_text(&session->arrays),
                             true);
        break;
    }
    if (status == STATUS_OK && code != SQLITE_OK)
        status = sqlite_error(session, code, diag);
    return status;
}

enum status sqlite_statement_bind_all(struct db_session *session,
                                      struct sqlite_statement *statement,
                                      const struct db_value *params,
                                      size_t nparams, bool copy,
                                      struct diag *diag)
{
    int wanted = sqlite3_bind_parameter_count(statement->handle);

    if ((size_t)wanted != nparams)
        return diag_set(diag, STATUS_PERMANENT,
                        "the statement has %d parameters, but %zu values were "
                        "given",
                        wanted, nparams);
    for (size_t i = 0; i < nparams; i++) {
        enum status status = sqlite_statement_bind(
            session, statement, (int)i + 1, &params[i], copy, diag);

        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* --- running ------------------------------------------------------------- */

static enum status step_to_end(struct db_session *session, sqlite3_stmt *handle,
                               int64_t *affected, struct diag *diag)
{
    int64_t before = sqlite3_total_changes64(session->handle);
    int code;

    session->round_trips++;
    do {
        code = sqlite3_step(handle);
    } while (code == SQLITE_ROW);
    if (code != SQLITE_DONE)
        return session->denied != NULL ? sqlite_cache_denied(session, diag)
                                       : sqlite_error(session, code, diag);
    /* what an earlier statement changed is not the work of a SELECT */
    if (affected != NULL)
        *affected = sqlite3_total_changes64(session->handle) == before
                        ? 0
                        : sqlite3_changes64(session->handle);
    return STATUS_OK;
}

enum status sqlite_statement_execute(struct db_session *session,
                                     const struct db_sql *sql,
                                     const struct db_value *params,
                                     size_t nparams, int64_t *affected,
                                     struct diag *diag)
{
    struct sqlite_statement *statement;
    enum status status;

    if (affected != NULL)
        *affected = 0;
    status = sqlite_cache_take(session, sql, &statement, diag);
    if (status != STATUS_OK)
        return status;
    status = sqlite_statement_bind_all(session, statement, params, nparams,
                                       false, diag);
    if (status == STATUS_OK)
        status = step_to_end(session, statement->handle, affected, diag);
    sqlite_cache_give(session, statement);
    return status;
}

enum status sqlite_statement_run(struct db_session *session, const char *text,
                                 struct diag *diag)
{
    struct db_sql sql = db_sql_make(text_of(text), DB_HOST);

    return sqlite_statement_execute(session, &sql, NULL, 0, NULL, diag);
}

/* --- scripts ------------------------------------------------------------- */

static size_t line_of(struct text script, const char *at)
{
    size_t line = 1;

    for (const char *c = script.data; c < at; c++)
        line += *c == '\n';
    return line;
}

/* A statement begins after the white space and comments before it. */
static const char *skip_blank(const char *at, const char *end)
{
    while (at < end) {
        if (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' ||
            *at == ';') {
            at++;
        } else if (end - at >= 2 && at[0] == '-' && at[1] == '-') {
            while (at < end && *at != '\n')
                at++;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
            const char *close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);

            at = close != NULL ? close + 2 : end;
        } else {
            break;
        }
    }
    return at;
}

static enum status run_script(struct db_session *session, struct text script,
                              struct diag *diag)
{
    const char *at = script.data;
    const char *end = script.data + script.len;

    while ((at = skip_blank(at, end)) < end) {
        const char *tail = end;
        sqlite3_stmt *handle = NULL;
        enum status status = STATUS_OK;
        int code;

        session->denied = NULL;
        code = sqlite3_prepare_v3(session->handle, at, (int)(end - at), 0,
                                  &handle, &tail);
        if (code != SQLITE_OK)
            status = session->denied != NULL
                         ? sqlite_cache_denied(session, diag)
                         : sqlite_error(session, code, diag);
        else if (handle != NULL)
            status = step_to_end(session, handle, NULL, diag);
        sqlite3_finalize(handle);
        if (status != STATUS_OK) {
            (void)diag_wrap(diag, "line %zu of the script",
                            line_of(script, at));
            return status;
        }
        at = tail;
    }
    return STATUS_OK;
}

enum status sqlite_statement_script(struct db_session *session,
                                    struct text script, enum db_origin origin,
                                    struct diag *diag)
{
    bool own = sqlite3_get_autocommit(session->handle) != 0;
    enum status status = STATUS_OK;

    if (script.len > INT32_MAX / 2 ||
        (script.len > 0 && memchr(script.data, '\0', script.len) != NULL))
        return diag_set(diag, STATUS_PERMANENT,
                        "the script is too long or holds a NUL byte");
    if (own) /* all of it or nothing */
        status = sqlite_statement_run(session, "BEGIN IMMEDIATE", diag);
    if (status != STATUS_OK)
        return status;
    session->origin = origin;
    session->creates = true;
    status = run_script(session, script, diag);
    session->origin = DB_HOST;
    session->creates = false;
    if (own && status == STATUS_OK)
        status = sqlite_statement_run(session, "COMMIT", diag);
    if (own && sqlite3_get_autocommit(session->handle) == 0)
        (void)sqlite3_exec(session->handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
