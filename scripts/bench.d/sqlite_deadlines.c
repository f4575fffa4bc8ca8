/*
 * sqlite_deadlines DATABASE -- fires what is due: pages of 500, each saga's row
 * read, its deadline deleted, its row written back under its version.
 */
#include "bare_deadlines.h"
#include "bare_sqlite.h"

int main(int argc, char **argv)
{
    sqlite3_stmt *begin, *commit, *checkpoint, *page, *read, *drop, *update;
    char consumer[37], state[64];
    sqlite3 *db;
    int got;

    if (argc != 2)
        bare_die("usage", "sqlite_deadlines DATABASE");
    db = bare_open(argv[1]);
    bare_consumer(db, SAGA_TYPE, consumer);
    begin = bare_prepare(db, "BEGIN IMMEDIATE");
    commit = bare_prepare(db, "COMMIT");
    checkpoint = bare_prepare(db, BARE_CHECKPOINT_READ);
    page = bare_prepare(
        db, "SELECT id, saga_id, payload_json FROM SAGA_DEADLINES WHERE"
            " saga_type = '" SAGA_TYPE "' AND next_retry_at <="
            " strftime('%Y-%m-%dT%H:%M:%f999Z', 'now')"
            " ORDER BY next_retry_at, id LIMIT 500");
    read = bare_prepare(db, "SELECT id, version, state_json FROM"
                            " SAGA_INSTANCES WHERE saga_type = '" SAGA_TYPE
                            "' AND saga_id = ?1");
    drop = bare_prepare(db, "DELETE FROM SAGA_DEADLINES WHERE id = ?1");
    update = bare_prepare(db, "UPDATE SAGA_INSTANCES SET state_json = ?2,"
                              " version = ?3 + 1 WHERE id = ?1 AND"
                              " version = ?3");
    sqlite3_bind_text(checkpoint, 1, consumer, 36, SQLITE_STATIC);
    do {
        got = 0;
        bare_run(begin);
        (void)bare_checkpoint(checkpoint);
        while (bare_row(page)) {
            struct due *due = &dues[got++];

            memcpy(due->id, sqlite3_column_text(page, 0), 37);
            due_take(due, bare_column(page, 1),
                     (const char *)sqlite3_column_text(page, 2));
        }
        for (int i = 0; i < got; i++) {
            struct due *due = &dues[i];

            bare_bind(read, 1, due_saga(due));
            while (bare_row(read)) {
                memcpy(due->row, sqlite3_column_text(read, 0), 37);
                due_row(due, sqlite3_column_int64(read, 1),
                        (const char *)sqlite3_column_text(read, 2));
            }
        }
        for (int i = 0; i < got; i++) {
            struct due *due = &dues[i];
            int size = due_state(due, state);

            sqlite3_bind_text(drop, 1, due->id, 36, SQLITE_STATIC);
            bare_run(drop);
            sqlite3_bind_text(update, 1, due->row, 36, SQLITE_STATIC);
            sqlite3_bind_text(update, 2, state, size, SQLITE_STATIC);
            sqlite3_bind_int64(update, 3, due->version);
            bare_run(update);
            if (sqlite3_changes(db) != 1)
                bare_die(due->saga, "was changed by another program");
        }
        bare_run(commit);
    } while (got > 0);

    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(checkpoint);
    sqlite3_finalize(page);
    sqlite3_finalize(read);
    sqlite3_finalize(drop);
    sqlite3_finalize(update);
    if (sqlite3_close(db) != SQLITE_OK)
        bare_die(argv[1], sqlite3_errmsg(db));
    return 0;
}
