#include "schema/rights.h"

#include "base/buffer.h"
#include "schema/fill.h"

static const struct {
    unsigned right;
    const char *verb;
} VERBS[] = {
    {RIGHT_SELECT, "SELECT"},
    {RIGHT_INSERT, "INSERT"},
    {RIGHT_UPDATE, "UPDATE"},
    {RIGHT_DELETE, "DELETE"},
};

/* Names are identifiers, so nothing has to be escaped. */
static void list(const struct rights_wanted *wanted, size_t count,
                 struct buffer *out)
{
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof(VERBS) / sizeof(VERBS[0]); j++)
            if ((wanted[i].rights & VERBS[j].right) != 0)
                buffer_printf(out, "%s{\"name\":\"%s\",\"verb\":\"%s\"}",
                              out->len > 1 ? "," : "", wanted[i].table,
                              VERBS[j].verb);
    buffer_append_char(out, ']');
}

static enum status ask(struct db *db, const struct rights_wanted *wanted,
                       size_t count, struct diag *diag)
{
    struct db_sql sql = db_sql_make(
        catalog_raw(db_dialect(db), SQL_RIGHTS_LACKING), DB_HOST);
    struct buffer json = BUFFER_EMPTY;
    struct db_value param;
    struct db_rows *rows;
    bool more;
    enum status status;

    list(wanted, count, &json);
    param = db_text_value(buffer_text(&json));
    status = db_query(db, &sql, &param, 1, &rows, diag);
    if (status == STATUS_OK) {
        status = db_next(rows, &more, diag);
        if (status == STATUS_OK && more) {
            struct text verb = db_get_text(rows, 0);
            struct text table = db_get_text(rows, 1);
            struct text user = db_get_text(rows, 2);

            status = diag_set(
                diag, STATUS_REFUSED,
                "user %.*s lacks %.*s on %.*s, which a host needs: GRANT "
                "%.*s ON %.*s TO %.*s, or give the host another user",
                TEXT_ARGS(user), TEXT_ARGS(verb), TEXT_ARGS(table),
                TEXT_ARGS(verb), TEXT_ARGS(table), TEXT_ARGS(user));
        }
        db_rows_close(rows);
    }
    buffer_free(&json);
    return status;
}

/* Where the right to delete is told by trying only: a statement that finds no
 * row. Why it was refused the server says in its words. */
static enum status try_delete(struct db *db, const char *table,
                              struct diag *diag)
{
    enum status status;

    if (catalog_raw(db_dialect(db), SQL_RIGHTS_DELETE).data == NULL)
        return STATUS_OK;
    status = fill_execute_on(db, table, SQL_RIGHTS_DELETE, diag);
    if (status != STATUS_PERMANENT)
        return status;
    if (diag != NULL)
        diag->status = STATUS_REFUSED;
    (void)diag_wrap(diag,
                    "a host deletes from %s, which is refused; where its user "
                    "lacks the right, GRANT DELETE ON %s",
                    table, table);
    return STATUS_REFUSED;
}

enum status rights_check(struct db *db, const struct rights_wanted *wanted,
                         size_t count, struct diag *diag)
{
    enum status status;

    /* whoever may open a file may do all to it */
    if (catalog_raw(db_dialect(db), SQL_RIGHTS_LACKING).data == NULL)
        return STATUS_OK;
    status = db_begin(db, diag);
    if (status != STATUS_OK)
        return status;
    status = ask(db, wanted, count, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if ((wanted[i].rights & RIGHT_DELETE) != 0)
            status = try_delete(db, wanted[i].table, diag);
    db_rollback(db);
    return status;
}
