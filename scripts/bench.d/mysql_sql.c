/*
 * mysql_sql URL balance|fold -- SQL projections: pages of 500, folded per
 * account of the page (balance: nearly a row for each event) or per day (fold:
 * few rows), one upsert of many rows, and the checkpoints in the same
 * transaction.
 */
#include "bare_accounts.h"
#include "bare_days.h"
#include "bare_mysql.h"

static struct days days;

/* Folds the page; gives the number of events and the last position. */
static int fold(MYSQL_RES *events, int by_day, int64_t *position)
{
    MYSQL_ROW row;
    int fresh, got = 0;

    for (; (row = mysql_fetch_row(events)) != NULL; got++) {
        const unsigned long *sizes = mysql_fetch_lengths(events);
        const char *type = row[2];
        int64_t cents = type[8] == 'D' || type[8] == 'W'
                            ? bare_number(row[4], "\"amount\":")
                            : 0;
        struct account *account;

        *position = strtoll(row[0], NULL, 10);
        if (by_day) {
            if (cents != 0)
                days_add(&days, row[3], cents);
            continue;
        }
        account = page_account(bare_cell(row, sizes, 1), &fresh);
        account->balance += type[8] == 'W' ? -cents : cents;
        account->row = fresh ? 1 : account->row + 1;
    }
    return got;
}

static void add_row(struct bare_text *sql, struct slice key, int64_t cents,
                    int64_t count)
{
    bare_puts(sql, sql->rows++ > 0 ? ",(" : "(");
    bare_quote(sql, key);
    bare_puts(sql, ",");
    bare_put_int(sql, cents);
    bare_puts(sql, ",");
    bare_put_int(sql, count);
    bare_puts(sql, ")");
}

static void write_rows(MYSQL *db, int by_day)
{
    static struct bare_text sql;

    sql.size = 0;
    sql.rows = 0;
    bare_puts(&sql, by_day
                        ? "INSERT INTO daily_turnover (day, cents, movements)"
                          " VALUES "
                        : "INSERT INTO account_balance (account, cents,"
                          " events) VALUES ");
    for (int i = 0; i < page.count; i++)
        add_row(&sql, account_key(page.order[i]), page.order[i]->balance,
                page.order[i]->row);
    for (int i = 0; i < days.count; i++)
        add_row(&sql, (struct slice){days.list[i].text, 10}, days.list[i].cents,
                days.list[i].movements);
    bare_puts(&sql, by_day ? " ON DUPLICATE KEY UPDATE cents = cents +"
                             " VALUES(cents),"
                             " movements = movements + VALUES(movements)"
                           : " ON DUPLICATE KEY UPDATE cents = cents +"
                             " VALUES(cents),"
                             " events = events + VALUES(events)");
    if (sql.rows > 0)
        bare_run(db, &sql);
    page_clear();
    days.count = 0;
}

int main(int argc, char **argv)
{
    const char *consumer;
    MYSQL *db;
    int by_day, got;

    if (argc != 3)
        bare_die("usage", "mysql_sql URL balance|fold");
    by_day = strcmp(argv[2], "fold") == 0;
    consumer = by_day ? "daily-turnover" : "account-balance";
    db = bare_open(argv[1]);
    bare_mark(db);
    do {
        MYSQL_RES *events = bare_page(db, consumer);
        int64_t position = 0;

        got = fold(events, by_day, &position);
        mysql_free_result(events);
        write_rows(db, by_day);
        if (got > 0)
            bare_commit(db, consumer, position);
        else
            bare_do(db, "ROLLBACK");
    } while (got > 0);
    mysql_close(db);
    return 0;
}
