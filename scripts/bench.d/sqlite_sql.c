/*
 * sqlite_sql DATABASE event|fold -- the daily turnover: pages of 500, an upsert
 * per event or, folded first, one per day of the page, with the checkpoints in
 * the same transaction.
 */
#include "bare_days.h"
#include "bare_sqlite.h"

static void upsert(sqlite3_stmt *statement, const char *day, int64_t cents,
                   int64_t movements)
{
    sqlite3_bind_text(statement, 1, day, 10, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, cents);
    sqlite3_bind_int64(statement, 3, movements);
    bare_run(statement);
}

int main(int argc, char **argv)
{
    static struct days days;
    struct bare_loop loop;
    sqlite3_stmt *add;
    int fold, got;

    if (argc != 3)
        bare_die("usage", "sqlite_sql DATABASE event|fold");
    fold = strcmp(argv[2], "fold") == 0;
    bare_loop_open(&loop, argv[1], "daily-turnover",
                   "event_type, occurred_at, payload");
    add = bare_prepare(loop.db,
                       "INSERT INTO daily_turnover (day, cents, movements)"
                       " VALUES (?1, ?2, ?3) ON CONFLICT (day) DO UPDATE"
                       " SET cents = cents + excluded.cents,"
                       " movements = movements + excluded.movements");

    do {
        int64_t position = bare_loop_begin(&loop);

        got = 0;
        while (bare_row(loop.events)) {
            const char *type = (const char *)sqlite3_column_text(loop.events,
                                                                 1);
            const char *at, *payload;
            int64_t cents;

            got++;
            position = sqlite3_column_int64(loop.events, 0);
            if (type[8] != 'D' && type[8] != 'W')
                continue;
            at = (const char *)sqlite3_column_text(loop.events, 2);
            payload = (const char *)sqlite3_column_text(loop.events, 3);
            cents = bare_number(payload, "\"amount\":");
            if (fold)
                days_add(&days, at, cents);
            else
                upsert(add, at, cents, 1);
        }
        for (int i = 0; i < days.count; i++)
            upsert(add, days.list[i].text, days.list[i].cents,
                   days.list[i].movements);
        days.count = 0;
        bare_loop_commit(&loop, got, position);
    } while (got > 0);

    sqlite3_finalize(add);
    bare_loop_close(&loop);
    return 0;
}
