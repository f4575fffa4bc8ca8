#include "schema/statistics.h"

#include "base/memory.h"
#include "schema/fill.h"

/* *grown are the places in the list of names. */
static enum status find_grown(struct db *db, const struct text *tables,
                              size_t count, int64_t *grown, size_t *ngrown,
                              struct diag *diag)
{
    struct db_sql sql = db_sql_make(
        catalog_raw(db_dialect(db), SQL_STATISTICS_GROWN), DB_HOST);
    const struct db_value param = db_texts(tables, count);
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(db, &sql, &param, 1, &rows, diag);

    *ngrown = 0;
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more)
        grown[(*ngrown)++] = db_get_int64(rows, 0) - 1;
    db_rows_close(rows);
    return status;
}

enum status statistics_refresh(struct db *db, const struct names *names,
                               struct diag *diag)
{
    size_t most = names_tables(names), count = 0, ngrown = 0;
    struct text *tables;
    int64_t *grown;
    enum status status;

    if (catalog_raw(db_dialect(db), SQL_STATISTICS_LOOK).data == NULL)
        return STATUS_OK;
    tables = mem_alloc(most * sizeof(*tables));
    grown = mem_alloc(most * sizeof(*grown));
    for (size_t i = 0; i < most; i++) {
        enum table_id like;
        const char *name = names_table(names, i, &like);

        if (name != NULL)
            tables[count++] = text_of(name);
    }
    status = db_begin(db, diag);
    if (status == STATUS_OK)
        status = find_grown(db, tables, count, grown, &ngrown, diag);
    for (size_t i = 0; status == STATUS_OK && i < ngrown; i++)
        status = fill_execute_on(db, tables[grown[i]].data, SQL_STATISTICS_LOOK,
                                 diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    mem_free(grown);
    mem_free(tables);
    return status;
}
