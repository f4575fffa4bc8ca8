/*
 * sqlite_sagas DATABASE -- the account saga: pages of 500, each saga's row read
 * once per page, folded, and written back under its version, with the
 * checkpoints in the same transaction.
 */
#include "bare_sagas.h"
#include "bare_sqlite.h"

/* The saga of this page, read from its row at first sight. */
static struct account *account_of(sqlite3_stmt *read, struct slice key)
{
    int fresh;
    struct account *account = page_saga(key, &fresh);

    if (!fresh)
        return account;
    bare_bind(read, 1, key);
    while (bare_row(read)) {
        saga_take(account, sqlite3_column_int64(read, 1),
                  sqlite3_column_type(read, 2) != SQLITE_NULL,
                  (const char *)sqlite3_column_text(read, 3));
        memcpy(account->message_id, sqlite3_column_text(read, 0), 37);
    }
    return account;
}

static void bind_closed(sqlite3_stmt *statement, int place,
                        const struct saga *saga)
{
    if (saga->closed)
        sqlite3_bind_text(statement, place, bare_time('T', "Z"), -1,
                          SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, place);
}

static void write_saga(sqlite3_stmt *insert, sqlite3_stmt *update,
                       struct account *account)
{
    const struct saga *saga = saga_of(account);
    char state[160];
    int size;

    if (!saga->changed)
        return;
    size = account_state(account, state);
    if (account->stored) {
        sqlite3_bind_text(update, 1, account->message_id, 36, SQLITE_STATIC);
        sqlite3_bind_text(update, 2, state, size, SQLITE_STATIC);
        sqlite3_bind_int64(update, 3, saga->version + 1);
        bind_closed(update, 4, saga);
        sqlite3_bind_int64(update, 5, saga->version);
        bare_run(update);
        if (sqlite3_changes(sqlite3_db_handle(update)) != 1)
            bare_die(account->key, "was changed by another program");
        return;
    }
    bare_uuid(account->message_id);
    sqlite3_bind_text(insert, 1, account->message_id, 36, SQLITE_STATIC);
    bare_bind(insert, 2, (struct slice){account->key, account->key_size});
    sqlite3_bind_text(insert, 3, state, size, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 4, bare_now());
    bind_closed(insert, 5, saga);
    bare_run(insert);
}

int main(int argc, char **argv)
{
    sqlite3_stmt *begin, *commit, *checkpoint, *move, *events, *read;
    sqlite3_stmt *insert, *update;
    char consumer[37];
    sqlite3 *db;
    int got;

    if (argc != 2)
        bare_die("usage", "sqlite_sagas DATABASE");
    db = bare_open(argv[1]);
    bare_consumer(db, SAGA_TYPE, consumer);
    bare_mark(db);
    begin = bare_prepare(db, "BEGIN IMMEDIATE");
    commit = bare_prepare(db, "COMMIT");
    checkpoint = bare_prepare(db, BARE_CHECKPOINT_READ);
    move = bare_prepare(db, BARE_CHECKPOINT_MOVE);
    events = bare_prepare(
        db, "SELECT global_position, aggregate_id, event_type, payload"
            " FROM EVENT_STORE WHERE global_position > ?1"
            " ORDER BY global_position LIMIT 500");
    read = bare_prepare(db, "SELECT id, version, completed_at, state_json"
                            " FROM SAGA_INSTANCES WHERE saga_type ="
                            " '" SAGA_TYPE "' AND saga_id = ?1");
    update = bare_prepare(
        db, "UPDATE SAGA_INSTANCES SET state_json = ?2, version = ?3,"
            " completed_at = ?4 WHERE id = ?1 AND version = ?5");
    insert = bare_prepare(
        db, "INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id, state_json,"
            " version, completed_at) VALUES (?1, '" SAGA_TYPE "', ?2, ?3, ?4,"
            " ?5)");
    sqlite3_bind_text(checkpoint, 1, consumer, 36, SQLITE_STATIC);
    sqlite3_bind_text(move, 1, consumer, 36, SQLITE_STATIC);

    do {
        int64_t position;

        got = 0;
        bare_run(begin);
        position = bare_checkpoint(checkpoint);
        sqlite3_bind_int64(events, 1, position);
        while (bare_row(events)) {
            struct account *account = account_of(read, bare_column(events, 1));

            got++;
            position = sqlite3_column_int64(events, 0);
            saga_apply(account, (const char *)sqlite3_column_text(events, 2),
                       (const char *)sqlite3_column_text(events, 3));
        }
        for (int i = 0; i < page.count; i++)
            write_saga(insert, update, page.order[i]);
        page_clear();
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
    sqlite3_finalize(read);
    sqlite3_finalize(insert);
    sqlite3_finalize(update);
    if (sqlite3_close(db) != SQLITE_OK)
        bare_die(argv[1], sqlite3_errmsg(db));
    return 0;
}
