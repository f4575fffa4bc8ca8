/*
 * postgres_sql URL balance|fold -- SQL projections: pages of 500, folded per
 * account of the page (balance: nearly a row for each event) or per day (fold:
 * few rows), one upsert, and the checkpoints in the same transaction.
 */
#include "bare_accounts.h"
#include "bare_days.h"
#include "bare_postgres.h"

static struct days days;
static struct bare_array keys, sums, counts;

static void fold(const PGresult *events, int by_day)
{
    int fresh;

    for (int i = 0; i < PQntuples(events); i++) {
        struct slice key = bare_column(events, i, 1);
        const char *type = PQgetvalue(events, i, 2);
        int64_t cents = type[8] == 'D' || type[8] == 'W'
                            ? bare_number(PQgetvalue(events, i, 4),
                                          "\"amount\":")
                            : 0;
        struct account *account;

        if (by_day) {
            if (cents != 0)
                days_add(&days, PQgetvalue(events, i, 3), cents);
            continue;
        }
        account = page_account(key, &fresh);
        account->balance += type[8] == 'W' ? -cents : cents;
        account->row = fresh ? 1 : account->row + 1;
    }
}

static void take_rows(void)
{
    bare_array_start(&keys, OID_TEXT);
    bare_array_start(&sums, OID_INT8);
    bare_array_start(&counts, OID_INT8);
    for (int i = 0; i < page.count; i++) {
        const struct account *account = page.order[i];

        bare_array_add(&keys, account_key(account));
        bare_array_int(&sums, account->balance);
        bare_array_int(&counts, account->row);
    }
    for (int i = 0; i < days.count; i++) {
        bare_array_add(&keys, (struct slice){days.list[i].text, 10});
        bare_array_int(&sums, days.list[i].cents);
        bare_array_int(&counts, days.list[i].movements);
    }
    page_clear();
    days.count = 0;
}

int main(int argc, char **argv)
{
    const char *consumer;
    PGconn *db;
    int by_day, got;

    if (argc != 3)
        bare_die("usage", "postgres_sql URL balance|fold");
    by_day = strcmp(argv[2], "fold") == 0;
    consumer = by_day ? "daily-turnover" : "account-balance";
    db = bare_open(argv[1]);
    bare_prepare_page(db);
    bare_prepare(db, "add",
                 by_day ? "INSERT INTO daily_turnover AS t (day, cents,"
                          " movements) SELECT * FROM unnest($1::text[],"
                          " $2::bigint[], $3::bigint[]) ON CONFLICT (day)"
                          " DO UPDATE SET cents = t.cents + excluded.cents,"
                          " movements = t.movements + excluded.movements"
                        : "INSERT INTO account_balance AS t (account, cents,"
                          " events) SELECT * FROM unnest($1::text[],"
                          " $2::bigint[], $3::bigint[]) ON CONFLICT (account)"
                          " DO UPDATE SET cents = t.cents + excluded.cents,"
                          " events = t.events + excluded.events");
    do {
        PGresult *events = bare_page(db, consumer);
        struct bare_params params = {.count = 0};

        got = PQntuples(events);
        fold(events, by_day);
        take_rows();
        bare_array_param(&params, &keys);
        bare_array_param(&params, &sums);
        bare_array_param(&params, &counts);
        if (keys.count > 0)
            bare_change(db, "add", &params, (int)keys.count);
        if (got > 0)
            bare_commit(db, consumer, bare_int(events, got - 1, 0));
        else
            bare_do(db, "ROLLBACK");
        PQclear(events);
    } while (got > 0);
    PQfinish(db);
    return 0;
}
