/*
 * Bare, accounts on MariaDB -- the loop of what keeps a row for each account:
 * pages of 500, the rows read together once per page, folded, and written back
 * with the checkpoints in the same transaction.
 */
#ifndef BENCH_BARE_ACCOUNTS_MYSQL_H
#define BENCH_BARE_ACCOUNTS_MYSQL_H

#include "bare_accounts.h"
#include "bare_mysql.h"

struct accounts_work {
    const char *consumer;
    /* Ends in "IN (", which the page's keys follow; the first column is the
     * key. */
    const char *read;
    void (*take)(struct account *account, MYSQL_ROW row);
    void (*apply)(struct account *account, const char *type,
                  const char *payload);
    /* All accounts of the page. */
    void (*write)(MYSQL *db);
};

static inline void accounts_read(MYSQL *db, const struct accounts_work *work)
{
    static struct bare_text sql;
    MYSQL_RES *rows;
    MYSQL_ROW row;
    int fresh;

    sql.size = 0;
    bare_puts(&sql, work->read);
    for (int i = 0; i < page.count; i++) {
        bare_puts(&sql, i > 0 ? "," : "");
        bare_quote(&sql, account_key(page.order[i]));
    }
    bare_puts(&sql, ")");
    rows = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(rows)) != NULL) {
        struct slice key = bare_cell(row, mysql_fetch_lengths(rows), 0);

        work->take(page_account(key, &fresh), row);
    }
    mysql_free_result(rows);
}

static inline void accounts_run(MYSQL *db, const struct accounts_work *work)
{
    int fresh, got;

    do {
        MYSQL_RES *events = bare_page(db, work->consumer);
        MYSQL_ROW row;
        int64_t position = 0;

        got = (int)mysql_num_rows(events);
        while ((row = mysql_fetch_row(events)) != NULL)
            (void)page_account(bare_cell(row, mysql_fetch_lengths(events), 1),
                               &fresh);
        if (got > 0)
            accounts_read(db, work);
        mysql_data_seek(events, 0);
        while ((row = mysql_fetch_row(events)) != NULL) {
            struct slice key = bare_cell(row, mysql_fetch_lengths(events), 1);

            position = strtoll(row[0], NULL, 10);
            work->apply(page_account(key, &fresh), row[2], row[4]);
        }
        mysql_free_result(events);
        work->write(db);
        page_clear();
        if (got > 0)
            bare_commit(db, work->consumer, position);
        else
            bare_do(db, "ROLLBACK");
    } while (got > 0);
}

#endif
