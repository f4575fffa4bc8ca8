#include "db/postgres.h"

#include "base/memory.h"

#include <stdlib.h>

/* One table that was asked about. */
struct postgres_columns {
    struct postgres_columns *next;
    char *table;
    struct postgres_column *columns;
    size_t count;
};

void postgres_columns_forget(struct db_session *session)
{
    while (session->columns != NULL) {
        struct postgres_columns *next = session->columns->next;

        mem_free(session->columns->table);
        mem_free(session->columns->columns);
        mem_free(session->columns);
        session->columns = next;
    }
}

static void copy_text(const PGresult *result, int row, int column, char out[64])
{
    size_t len = (size_t)PQgetlength(result, row, column);

    if (len > 63)
        len = 63;
    memcpy(out, PQgetvalue(result, row, column), len);
    out[len] = '\0';
}

static struct postgres_columns *keep(struct db_session *session,
                                     const char *table, const PGresult *result)
{
    struct postgres_columns *made = mem_alloc(sizeof(*made));

    made->table = mem_copy_text(table, strlen(table));
    made->count = (size_t)PQntuples(result);
    made->columns = mem_alloc((made->count + 1) * sizeof(*made->columns));
    for (size_t i = 0; i < made->count; i++) {
        struct postgres_column *column = &made->columns[i];
        char number[64];

        copy_text(result, (int)i, 0, column->name);
        copy_text(result, (int)i, 1, number);
        column->type = (unsigned)strtoul(number, NULL, 10);
        copy_text(result, (int)i, 2, column->type_name);
    }
    made->next = session->columns;
    session->columns = made;
    return made;
}

enum status postgres_columns_of(struct db_session *session, const char *table,
                                const struct postgres_column **columns,
                                size_t *count, struct diag *diag)
{
    struct postgres_columns *found = session->columns;
    struct buffer name = BUFFER_EMPTY;
    PGresult *result = NULL;
    enum status status;

    while (found != NULL && strcmp(found->table, table) != 0)
        found = found->next;
    if (found != NULL) {
        *columns = found->columns;
        *count = found->count;
        return STATUS_OK;
    }
    status = postgres_bulk_name(&name, table, diag);
    if (status == STATUS_OK)
        status = postgres_statement_ask(
            session,
            "SELECT a.attname::text, a.atttypid::text,"
            " format_type(a.atttypid, NULL)"
            " FROM pg_catalog.pg_attribute AS a"
            " WHERE a.attrelid = to_regclass(?1::text) AND a.attnum > 0"
            " AND NOT a.attisdropped ORDER BY a.attnum",
            (struct db_value[]){db_text_value(buffer_text(&name))}, 1, &result,
            diag);
    if (status == STATUS_OK && PQntuples(result) == 0) {
        status = diag_set(diag, STATUS_PERMANENT, "there is no table %s",
                          name.data);
        if (diag != NULL)
            text_clean(text_of(table), diag->constraint,
                       sizeof(diag->constraint));
    }
    if (status == STATUS_OK) {
        found = keep(session, table, result);
        *columns = found->columns;
        *count = found->count;
    }
    PQclear(result);
    buffer_free(&name);
    return status;
}
