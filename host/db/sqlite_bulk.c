#include "db/sqlite.h"

#define NAME_MAX_LEN 63 /* the shortest limit among the dialects */

/* --- building the statement of one row ----------------------------------- */

enum status sqlite_bulk_name(struct buffer *out, const char *name,
                             struct diag *diag)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t len = strspn(name, letters);

    if (len == 0 || len > NAME_MAX_LEN || name[len] != '\0' ||
        (name[0] >= '0' && name[0] <= '9'))
        return diag_set(diag, STATUS_PERMANENT,
                        "\"%s\" cannot be the name of a table or column: use "
                        "letters, digits and underscores, at most %d of them",
                        name, NAME_MAX_LEN);
    buffer_append_char(out, '"');
    buffer_append(out, name, len);
    buffer_append_char(out, '"');
    return STATUS_OK;
}

/* The names were checked once, before anything is built from them. */
static enum status check_names(struct buffer *out, const struct db_table *table,
                               struct diag *diag)
{
    enum status status = sqlite_bulk_name(out, table->name, diag);

    for (size_t i = 0; status == STATUS_OK && i < table->ncolumns; i++)
        status = sqlite_bulk_name(out, table->columns[i].name, diag);
    buffer_clear(out);
    return status;
}

static size_t count_role(const struct db_table *table, enum db_role role)
{
    size_t count = 0;

    for (size_t i = 0; i < table->ncolumns; i++)
        count += table->columns[i].role == role;
    return count;
}

/* Appends "column" = ?n for the columns of a role, `between` them. */
static void append_equals(struct buffer *out, const struct db_table *table,
                          enum db_role role, const char *between, bool *first)
{
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != role)
            continue;
        buffer_printf(out, "%s\"%s\" = ?%zu", *first ? "" : between,
                      table->columns[i].name, i + 1);
        *first = false;
    }
}

static void append_where(struct buffer *out, const struct db_table *table)
{
    bool first = true;

    buffer_append_string(out, " WHERE ");
    append_equals(out, table, DB_KEY, " AND ", &first);
    append_equals(out, table, DB_GUARD, " AND ", &first);
}

static void append_insert(struct buffer *out, const struct db_table *table)
{
    buffer_printf(out, "INSERT INTO \"%s\" (", table->name);
    for (size_t i = 0; i < table->ncolumns; i++)
        buffer_printf(out, "%s\"%s\"", i > 0 ? ", " : "",
                      table->columns[i].name);
    buffer_append_string(out, ") VALUES (");
    for (size_t i = 0; i < table->ncolumns; i++)
        buffer_printf(out, "%s?%zu", i > 0 ? ", " : "", i + 1);
    buffer_append_char(out, ')');
}

/*
 * A sum beyond 64 bits would silently become a REAL in a table that is not
 * STRICT; abs() of the smallest integer makes it an error instead.
 */
static void append_sum(struct buffer *out, const struct db_table *table,
                       const struct db_column *column)
{
    const char *t = table->name;
    const char *c = column->name;

    if (column->type != DB_INT64) {
        buffer_printf(out, "coalesce(\"%s\".\"%s\", 0) + excluded.\"%s\"", t, c,
                      c);
        return;
    }
    buffer_printf(out,
                  "CASE WHEN typeof(coalesce(\"%s\".\"%s\", 0) +"
                  " excluded.\"%s\") = 'real'"
                  " AND typeof(\"%s\".\"%s\") = 'integer'"
                  " THEN abs(-9223372036854775807 - 1)"
                  " ELSE coalesce(\"%s\".\"%s\", 0) + excluded.\"%s\" END",
                  t, c, c, t, c, t, c, c);
}

static void append_conflict(struct buffer *out, const struct db_table *table)
{
    bool first = true;

    buffer_append_string(out, " ON CONFLICT (");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != DB_KEY)
            continue;
        buffer_printf(out, "%s\"%s\"", first ? "" : ", ",
                      table->columns[i].name);
        first = false;
    }
    buffer_append_string(out, ") DO ");
    first = true;
    for (size_t i = 0; i < table->ncolumns; i++) {
        const struct db_column *column = &table->columns[i];

        if (column->role == DB_KEY)
            continue;
        buffer_printf(out, "%s\"%s\" = ", first ? "UPDATE SET " : ", ",
                      column->name);
        first = false;
        if (column->role == DB_ADD)
            append_sum(out, table, column);
        else
            buffer_printf(out, "excluded.\"%s\"", column->name);
    }
    if (first)
        buffer_append_string(out, "NOTHING");
}

static enum status check_roles(enum db_bulk what, const struct db_table *table,
                               struct diag *diag)
{
    size_t keys = count_role(table, DB_KEY);
    size_t guards = count_role(table, DB_GUARD);
    size_t sets = count_role(table, DB_SET);
    size_t adds = count_role(table, DB_ADD);
    bool good = false;

    switch (what) {
    case DB_INSERT:
        good = guards == 0 && table->ncolumns > 0;
        break;
    case DB_UPSERT:
        good = guards == 0 && keys > 0;
        break;
    case DB_UPDATE:
        good = keys > 0 && sets > 0 && adds == 0;
        break;
    case DB_DELETE:
        good = keys > 0 && sets == 0 && adds == 0;
        break;
    }
    if (good)
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "the columns of a bulk statement on table %s do not fit it",
                    table->name);
}

static enum status build(struct buffer *out, enum db_bulk what,
                         const struct db_table *table, struct diag *diag)
{
    enum status status = check_roles(what, table, diag);
    bool first = true;

    buffer_clear(out);
    if (status == STATUS_OK)
        status = check_names(out, table, diag);
    if (status != STATUS_OK)
        return status;
    switch (what) {
    case DB_INSERT:
        append_insert(out, table);
        break;
    case DB_UPSERT:
        append_insert(out, table);
        append_conflict(out, table);
        break;
    case DB_UPDATE:
        buffer_printf(out, "UPDATE \"%s\" SET ", table->name);
        append_equals(out, table, DB_SET, ", ", &first);
        append_where(out, table);
        break;
    case DB_DELETE:
        buffer_printf(out, "DELETE FROM \"%s\"", table->name);
        append_where(out, table);
        break;
    }
    return STATUS_OK;
}

/* --- running ------------------------------------------------------------- */

static enum status run_row(struct db_session *session,
                           struct sqlite_statement *statement,
                           const struct db_value *row, size_t ncolumns,
                           struct diag *diag)
{
    enum status status;
    int code;

    for (size_t i = 0; i < ncolumns; i++) {
        status = sqlite_statement_bind(session, statement, (int)i + 1, &row[i],
                                       false, diag);
        if (status != STATUS_OK)
            return status;
    }
    session->round_trips++;
    code = sqlite3_step(statement->handle);
    if (code != SQLITE_DONE)
        return sqlite_error(session, code, diag);
    (void)sqlite3_reset(statement->handle);
    return STATUS_OK;
}

/* A key column tells which row it was; values of others may be private. */
static enum status row_changed(const struct db_table *table,
                               const struct db_value *row, struct diag *diag)
{
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY && row[i].type == DB_TEXT)
            return diag_set(diag, STATUS_CONFLICT,
                            "the row \"" TEXT_FORMAT
                            "\" of table %s was changed by somebody else",
                            TEXT_ARGS(row[i].as.text), table->name);
    }
    return diag_set(diag, STATUS_CONFLICT,
                    "a row of table %s was changed by somebody else",
                    table->name);
}

static enum status run_bulk(struct db_session *session,
                            const struct db_queued *item, struct diag *diag)
{
    const struct db_table *table = item->table;
    bool exact = item->what == DB_UPDATE || item->what == DB_DELETE;
    struct sqlite_statement *statement;
    struct db_sql sql;
    enum status status;

    status = build(&session->text, item->what, table, diag);
    if (status != STATUS_OK)
        return status;
    sql = db_sql_make(buffer_text(&session->text), table->origin);
    status = sqlite_cache_take(session, &sql, &statement, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; status == STATUS_OK && i < item->count; i++) {
        const struct db_value *row = item->values + i * table->ncolumns;

        status = run_row(session, statement, row, table->ncolumns, diag);
        if (status == STATUS_OK && exact &&
            sqlite3_changes(session->handle) != 1)
            status = row_changed(table, row, diag);
    }
    sqlite_cache_give(session, statement);
    return status;
}

static enum status run_statement(struct db_session *session,
                                 const struct db_queued *item,
                                 struct diag *diag)
{
    int64_t affected;
    enum status status;

    status = sqlite_statement_execute(session, &item->sql, item->values,
                                      item->count, &affected, diag);
    if (status == STATUS_OK && item->expect != DB_ANY_ROWS &&
        affected != item->expect)
        return diag_set(diag, STATUS_CONFLICT,
                        "a statement touched %lld rows instead of %lld: "
                        "somebody else changed them",
                        (long long)affected, (long long)item->expect);
    return status;
}

enum status sqlite_bulk_run(struct db_session *session,
                            const struct db_queued *queue, size_t count,
                            size_t *failed, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = queue[i].bulk
                                 ? run_bulk(session, &queue[i], diag)
                                 : run_statement(session, &queue[i], diag);

        if (status != STATUS_OK) {
            *failed = i;
            return status;
        }
    }
    return STATUS_OK;
}

/* --- lookup -------------------------------------------------------------- */

static enum status build_lookup(struct buffer *out,
                                const struct db_table *table, struct diag *diag)
{
    bool first = true;
    enum status status;

    buffer_clear(out);
    if (count_role(table, DB_KEY) != 1)
        return diag_set(diag, STATUS_PERMANENT,
                        "a lookup in table %s needs one key column",
                        table->name);
    status = check_names(out, table, diag);
    if (status != STATUS_OK)
        return status;
    buffer_append_string(out, "SELECT ");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY)
            continue;
        buffer_printf(out, "%s\"%s\"", first ? "" : ", ",
                      table->columns[i].name);
        first = false;
    }
    buffer_printf(out, "%s FROM \"%s\" WHERE ", first ? "1" : "", table->name);
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY)
            buffer_printf(out, "\"%s\" = ?1", table->columns[i].name);
    }
    return STATUS_OK;
}

static enum status lookup_key(struct sqlite_rows *rows, struct text key,
                              size_t index, db_lookup_fn fn, void *arg,
                              struct diag *diag)
{
    struct db_session *session = rows->session;
    struct db_value value = db_text_value(key);
    enum status status;
    int code;

    status = sqlite_statement_bind(session, rows->statement, 1, &value, false,
                                   diag);
    if (status != STATUS_OK)
        return status;
    session->round_trips++;
    code = sqlite3_step(rows->statement->handle);
    if (code == SQLITE_ROW)
        status = fn(arg, index, &rows->base, diag);
    else if (code != SQLITE_DONE)
        status = sqlite_error(session, code, diag);
    if (status == STATUS_OK)
        (void)sqlite3_reset(rows->statement->handle);
    return status;
}

enum status sqlite_bulk_lookup(struct db_session *session,
                               const struct db_table *table,
                               const struct text *keys, size_t nkeys,
                               db_lookup_fn fn, void *arg, struct diag *diag)
{
    struct sqlite_rows rows = {.base.driver = &db_sqlite_driver,
                               .session = session};
    struct db_sql sql;
    enum status status;

    status = build_lookup(&session->text, table, diag);
    if (status != STATUS_OK)
        return status;
    sql = db_sql_make(buffer_text(&session->text), table->origin);
    status = sqlite_cache_take(session, &sql, &rows.statement, diag);
    for (size_t i = 0; status == STATUS_OK && i < nkeys; i++)
        status = lookup_key(&rows, keys[i], i, fn, arg, diag);
    if (rows.statement != NULL)
        sqlite_cache_give(session, rows.statement);
    return status;
}
