#include "db/postgres.h"

#include "base/memory.h"
#include "db/driver_bulk.h"

enum status postgres_bulk_name(struct buffer *out, const char *name,
                               struct diag *diag)
{
    enum status status = driver_bulk_check_name(name, diag);

    if (status != STATUS_OK)
        return status;
    buffer_append_char(out, '"');
    for (const char *c = name; *c != '\0'; c++)
        buffer_append_char(out, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a')
                                                       : *c);
    buffer_append_char(out, '"');
    return STATUS_OK;
}

/* --- what is known of the columns ---------------------------------------- */

/* A bulk statement while it is built. */
struct bulk {
    const struct db_table *table;
    unsigned *elements;                   /* in which values travel */
    const struct postgres_column **wants; /* the table's columns */
    struct buffer *out;
};

static const struct postgres_column *
find_column(const struct postgres_column *columns, size_t count,
            const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(columns[i].name, name) == 0)
            return &columns[i];
    }
    return NULL;
}

enum status postgres_bulk_columns(struct db_session *session,
                                  const struct db_table *table,
                                  const struct postgres_column **wants,
                                  struct diag *diag)
{
    const struct postgres_column *columns;
    size_t count;
    enum status status = postgres_columns_of(session, table->name, &columns,
                                             &count, diag);

    for (size_t i = 0; status == STATUS_OK && i < table->ncolumns; i++) {
        wants[i] = find_column(columns, count, table->columns[i].name);
        if (wants[i] == NULL)
            status = diag_set(diag, STATUS_PERMANENT,
                              "table %s has no column %s", table->name,
                              table->columns[i].name);
    }
    return status;
}

/* --- parts of statements ------------------------------------------------- */

/* Names were checked when the columns were found. */
void postgres_bulk_append(struct buffer *out, const char *name)
{
    enum status status = postgres_bulk_name(out, name, NULL);

    (void)status;
}

static void append_column(const struct bulk *bulk, size_t i)
{
    postgres_bulk_append(bulk->out, bulk->table->columns[i].name);
}

/* Assigning text to a character column checks the length; a cast would cut. */
bool postgres_bulk_needs_cast(unsigned element, unsigned target)
{
    if (element == target)
        return false;
    if (element == PG_TEXT)
        return target != PG_VARCHAR && target != PG_BPCHAR;
    return true;
}

/* The value of column i in the rows that came as arrays. */
static void append_value(const struct bulk *bulk, size_t i)
{
    const struct postgres_column *wants = bulk->wants[i];

    buffer_printf(bulk->out, "u.c%zu", i + 1);
    if (postgres_bulk_needs_cast(bulk->elements[i], wants->type))
        buffer_printf(bulk->out, "::%s", wants->type_name);
}

/* unnest(?1::bigint[], ...) AS u(c1, ...) */
static void append_rows(const struct bulk *bulk, bool numbered)
{
    size_t count = bulk->table->ncolumns;

    buffer_append_string(bulk->out, "unnest(");
    for (size_t i = 0; i < count; i++)
        buffer_printf(bulk->out, "%s?%zu::%s[]", i > 0 ? ", " : "", i + 1,
                      postgres_param_name(bulk->elements[i]));
    buffer_printf(bulk->out, ")%s AS u(", numbered ? " WITH ORDINALITY" : "");
    for (size_t i = 0; i < count; i++)
        buffer_printf(bulk->out, "%sc%zu", i > 0 ? ", " : "", i + 1);
    buffer_append_string(bulk->out, numbered ? ", n)" : ")");
}

static void append_insert(const struct bulk *bulk)
{
    size_t count = bulk->table->ncolumns;

    buffer_append_string(bulk->out, "INSERT INTO ");
    postgres_bulk_append(bulk->out, bulk->table->name);
    buffer_append_string(bulk->out, " AS t (");
    for (size_t i = 0; i < count; i++) {
        buffer_append_string(bulk->out, i > 0 ? ", " : "");
        append_column(bulk, i);
    }
    buffer_append_string(bulk->out, ") SELECT ");
    for (size_t i = 0; i < count; i++) {
        buffer_append_string(bulk->out, i > 0 ? ", " : "");
        append_value(bulk, i);
    }
    buffer_append_string(bulk->out, " FROM ");
    append_rows(bulk, false);
}

static void append_conflict(const struct bulk *bulk)
{
    const struct db_table *table = bulk->table;
    const char *between = " ON CONFLICT (";
    bool any = false;

    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != DB_KEY)
            continue;
        buffer_append_string(bulk->out, between);
        append_column(bulk, i);
        between = ", ";
    }
    buffer_append_string(bulk->out, ") DO ");
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY)
            continue;
        buffer_append_string(bulk->out, any ? ", " : "UPDATE SET ");
        any = true;
        append_column(bulk, i);
        buffer_append_string(bulk->out, " = ");
        if (table->columns[i].role == DB_ADD) {
            buffer_append_string(bulk->out, "coalesce(t.");
            append_column(bulk, i);
            buffer_append_string(bulk->out, ", 0) + ");
        }
        buffer_append_string(bulk->out, "excluded.");
        append_column(bulk, i);
    }
    if (!any)
        buffer_append_string(bulk->out, "NOTHING");
}

/* The rows as a common table, each with its number. */
static void append_numbered(const struct bulk *bulk)
{
    buffer_append_string(bulk->out, "WITH v AS (SELECT ");
    for (size_t i = 0; i < bulk->table->ncolumns; i++) {
        append_value(bulk, i);
        buffer_printf(bulk->out, " AS c%zu, ", i + 1);
    }
    buffer_append_string(bulk->out, "u.n FROM ");
    append_rows(bulk, true);
    buffer_append_string(bulk->out, "), w AS (");
}

static void append_where(const struct bulk *bulk)
{
    const struct db_table *table = bulk->table;
    const char *between = " WHERE ";

    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != DB_KEY &&
            table->columns[i].role != DB_GUARD)
            continue;
        buffer_printf(bulk->out, "%st.", between);
        append_column(bulk, i);
        buffer_printf(bulk->out, " = v.c%zu", i + 1);
        between = " AND ";
    }
    buffer_append_string(bulk->out, " RETURNING v.n)");
}

/* The key that tells a reader which row it was. */
static size_t telling_key(const struct bulk *bulk)
{
    const struct db_table *table = bulk->table;
    size_t first = table->ncolumns;

    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != DB_KEY)
            continue;
        if (bulk->elements[i] == PG_TEXT)
            return i;
        if (first == table->ncolumns)
            first = i;
    }
    return first;
}

/* Every row was met, or the statement fails and names the first that was not;
 * see postgres_statement.c for the trick. Values of columns that are no keys
 * may be private. */
static void append_count(const struct bulk *bulk)
{
    buffer_printf(
        bulk->out,
        " SELECT CASE WHEN count(*) = cardinality(?1::%s[]) THEN 0 ELSE"
        " CAST('" PG_COUNT_MARK "the row \"' ||"
        " coalesce((SELECT left(v.c%zu::text, 100) FROM v WHERE NOT EXISTS"
        " (SELECT 1 FROM w WHERE w.n = v.n) ORDER BY v.n LIMIT 1), '') ||"
        " '\" of table %s was changed by somebody else" PG_COUNT_END
        "' AS integer) END FROM w",
        postgres_param_name(bulk->elements[0]), telling_key(bulk) + 1,
        bulk->table->name);
}

static void append_update(const struct bulk *bulk)
{
    const struct db_table *table = bulk->table;
    const char *between = " AS t SET ";

    append_numbered(bulk);
    buffer_append_string(bulk->out, "UPDATE ");
    postgres_bulk_append(bulk->out, table->name);
    for (size_t i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].role != DB_SET)
            continue;
        buffer_append_string(bulk->out, between);
        append_column(bulk, i);
        buffer_printf(bulk->out, " = v.c%zu", i + 1);
        between = ", ";
    }
    buffer_append_string(bulk->out, " FROM v");
    append_where(bulk);
    append_count(bulk);
}

static void append_delete(const struct bulk *bulk)
{
    append_numbered(bulk);
    buffer_append_string(bulk->out, "DELETE FROM ");
    postgres_bulk_append(bulk->out, bulk->table->name);
    buffer_append_string(bulk->out, " AS t USING v");
    append_where(bulk);
    append_count(bulk);
}

static void build(const struct bulk *bulk, enum db_bulk what)
{
    buffer_clear(bulk->out);
    switch (what) {
    case DB_INSERT:
        append_insert(bulk);
        break;
    case DB_UPSERT:
        append_insert(bulk);
        append_conflict(bulk);
        break;
    case DB_UPDATE:
        append_update(bulk);
        break;
    case DB_DELETE:
        append_delete(bulk);
        break;
    }
}

/* --- running ------------------------------------------------------------- */

static enum status send_built(struct db_session *session,
                              const struct db_queued *item,
                              const struct bulk *bulk, size_t index,
                              struct diag *diag)
{
    struct db_sql sql;
    enum status status;

    build(bulk, item->what);
    status = postgres_param_columns(&session->params, item->table, item->values,
                                    item->count, bulk->elements, diag);
    if (status != STATUS_OK)
        return status;
    /* built here, whoever it is for: it has the host's parameter style */
    sql = db_sql_make(buffer_text(&session->text), DB_HOST);
    return postgres_cache_send(session, &sql, &session->params, true, index,
                               diag);
}

static enum status send_bulk(struct db_session *session,
                             const struct db_queued *item, size_t index,
                             struct diag *diag)
{
    const struct db_table *table = item->table;
    size_t count = table->ncolumns;
    struct bulk bulk = {
        .table = table,
        .elements = mem_grow(NULL, count + 1, sizeof(*bulk.elements)),
        .wants = mem_alloc((count + 1) * sizeof(void *)),
        .out = &session->text,
    };
    enum status status = driver_bulk_check_roles(item->what, table, diag);

    if (status == STATUS_OK)
        status = postgres_guard_check_table(table->name, table->origin,
                                            session->host_tables, diag);
    if (status == STATUS_OK)
        status = postgres_bulk_columns(session, table, bulk.wants, diag);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < count; i++)
            bulk.elements[i] = postgres_param_element(
                table, item->values, item->count, i, bulk.wants[i]->type);
        status = send_built(session, item, &bulk, index, diag);
    }
    mem_free(bulk.elements);
    mem_free((void *)bulk.wants);
    return status;
}

/* Asks for the tables that are new here, before the pipeline begins. A table
 * that is not there is told by the statement that needs it. */
static enum status know_tables(struct db_session *session,
                               const struct db_queued *queue, size_t count,
                               size_t *failed, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        const struct postgres_column *columns;
        size_t ncolumns;
        enum status status;

        if (!queue[i].bulk)
            continue;
        status = postgres_columns_of(session, queue[i].table->name, &columns,
                                     &ncolumns, diag);
        if (status != STATUS_OK) {
            *failed = i;
            return status;
        }
    }
    return STATUS_OK;
}

static enum status send_all(struct db_session *session,
                            const struct db_queued *queue, size_t count,
                            size_t *failed, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        const struct db_queued *item = &queue[i];
        enum status status;

        if (item->bulk)
            status = send_bulk(session, item, i, diag);
        else
            status = postgres_statement_send(session, &item->sql, item->values,
                                             item->count, item->expect, i,
                                             diag);
        if (status != STATUS_OK) {
            *failed = i;
            return status;
        }
    }
    return STATUS_OK;
}

enum status postgres_bulk_drain(struct db_session *session, enum status unsent,
                                size_t *failed, struct diag *diag)
{
    struct diag why = *diag;
    size_t earlier = *failed;
    enum status status;

    if (unsent == STATUS_LOST) {
        postgres_connect_close(session);
        return unsent;
    }
    status = postgres_pipe_finish(session, NULL, &earlier, diag);
    if (status != STATUS_OK) {
        *failed = earlier;
        return status;
    }
    *diag = why;
    return unsent;
}

enum status postgres_bulk_lead(struct db_session *session,
                               const struct db_queued *queue, size_t count,
                               size_t *failed, struct diag *diag)
{
    enum status status = know_tables(session, queue, count, failed, diag);

    if (status == STATUS_OK)
        status = postgres_pipe_start(session, diag);
    if (status != STATUS_OK)
        return status;
    status = send_all(session, queue, count, failed, diag);
    return status == STATUS_OK
               ? STATUS_OK
               : postgres_bulk_drain(session, status, failed, diag);
}

enum status postgres_bulk_run(struct db_session *session,
                              const struct db_queued *queue, size_t count,
                              enum db_end end, size_t *failed,
                              struct diag *diag)
{
    enum status status = know_tables(session, queue, count, failed, diag);

    if (status == STATUS_OK)
        status = end == DB_END_LEAVE ? postgres_pipe_start_ahead(session, diag)
                                     : postgres_pipe_start(session, diag);
    if (status != STATUS_OK)
        return status;
    status = send_all(session, queue, count, failed, diag);
    if (status == STATUS_OK && end != DB_END_NONE)
        status = postgres_pipe_text(session, PG_SENT_COMMIT, "COMMIT", diag);
    if (status == STATUS_OK && end == DB_END_COMMIT &&
        postgres_ahead_send(session, NULL) == STATUS_LOST)
        status = postgres_error_lost(session, diag);
    if (status != STATUS_OK)
        status = postgres_bulk_drain(session, status, failed, diag);
    else if (end == DB_END_LEAVE)
        status = postgres_pipe_leave(session, diag);
    else
        status = postgres_pipe_finish(session, NULL, failed, diag);
    /* somebody may have altered a table */
    if (status == STATUS_PERMANENT)
        postgres_columns_forget(session);
    return status;
}
