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
    sqlite3_stmt *begin, *commit, *checkpoint, *move, *events, *add;
    char consumer[37];
    sqlite3 *db;
    int fold, got;

    if (argc != 3)
        bare_die("usage", "sqlite_sql DATABASE event|fold");
    fold = strcmp(argv[2], "fold") == 0;
    db = bare_open(argv[1]);
    bare_consumer(db, "daily-turnover", consumer);
    bare_mark(db);
    begin = bare_prepare(db, "BEGIN IMMEDIATE");
    commit = bare_prepare(db, "COMMIT");
    checkpoint = bare_prepare(db, BARE_CHECKPOINT_READ);
    move = bare_prepare(db, BARE_CHECKPOINT_MOVE);
    events = bare_prepare(
        db, "SELECT global_position, event_type, occurred_at, payload"
            " FROM EVENT_STORE WHERE global_position > ?1"
            " ORDER BY global_position LIMIT 500");
    add = bare_prepare(db, "INSERT INTO daily_turnover (day, cents, movements)"
                           " VALUES (?1, ?2, ?3) ON CONFLICT (day) DO UPDATE"
                           " SET cents = cents + excluded.cents,"
                           " movements = movements + excluded.movements");
    sqlite3_bind_text(checkpoint, 1, consumer, 36, SQLITE_STATIC);
    sqlite3_bind_text(move, 1, consumer, 36, SQLITE_STATIC);

    do {
        int64_t position;

        got = 0;
        bare_run(begin);
        position = bare_checkpoint(checkpoint);
        sqlite3_bind_int64(events, 1, position);
        while (bare_row(events)) {
            const char *type = (const char *)sqlite3_column_text(events, 1);
            const char *at, *payload;
            int64_t cents;

            got++;
            position = sqlite3_column_int64(events, 0);
            if (type[8] != 'D' && type[8] != 'W')
                continue;
            at = (const char *)sqlite3_column_text(events, 2);
            payload = (const char *)sqlite3_column_text(events, 3);
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
        if (got > 0) {
            sqlite3_bind_int64(move, 2, position);
            bare_run(move);
        }
        bare_run(commit);
    } while (got > 0);

    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(checkpoint);
    sqlite3_finalize(move);
    sqlite3_finalize(events);
    sqlite3_finalize(add);
    if (sqlite3_close(db) != SQLITE_OK)
        bare_die(argv[1], sqlite3_errmsg(db));
    return 0;
}
