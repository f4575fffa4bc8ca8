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
    struct account *account = page_account(key, &fresh);

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
                        const struct account *account)
{
    if (account->closed)
        sqlite3_bind_text(statement, place, bare_time('T', "Z"), -1,
                          SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, place);
}

static void write_saga(sqlite3_stmt *insert, sqlite3_stmt *update,
                       struct account *account)
{
    char state[160];
    int size;

    if (!account->changed)
        return;
    size = account_state(account, state);
    if (account->stored) {
        sqlite3_bind_text(update, 1, account->message_id, 36, SQLITE_STATIC);
        sqlite3_bind_text(update, 2, state, size, SQLITE_STATIC);
        sqlite3_bind_int64(update, 3, account->version + 1);
        bind_closed(update, 4, account);
        sqlite3_bind_int64(update, 5, account->version);
        bare_run(update);
        if (sqlite3_changes(sqlite3_db_handle(update)) != 1)
            bare_die(account->key, "was changed by another program");
        return;
    }
    bare_uuid(account->message_id);
    sqlite3_bind_text(insert, 1, account->message_id, 36, SQLITE_STATIC);
    bare_bind(insert, 2, account_key(account));
    sqlite3_bind_text(insert, 3, state, size, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 4, bare_now());
    bind_closed(insert, 5, account);
    bare_run(insert);
}

int main(int argc, char **argv)
{
    struct bare_loop loop;
    sqlite3_stmt *read, *insert, *update;
    int got;

    if (argc != 2)
        bare_die("usage", "sqlite_sagas DATABASE");
    bare_loop_open(&loop, argv[1], SAGA_TYPE,
                   "aggregate_id, event_type, payload");
    read = bare_prepare(loop.db, "SELECT id, version, completed_at, state_json"
                                 " FROM SAGA_INSTANCES WHERE saga_type ="
                                 " '" SAGA_TYPE "' AND saga_id = ?1");
    update = bare_prepare(
        loop.db, "UPDATE SAGA_INSTANCES SET state_json = ?2, version = ?3,"
                 " completed_at = ?4 WHERE id = ?1 AND version = ?5");
    insert = bare_prepare(
        loop.db,
        "INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id, state_json,"
        " version, completed_at) VALUES (?1, '" SAGA_TYPE "', ?2, ?3, ?4,"
        " ?5)");

    do {
        int64_t position = bare_loop_begin(&loop);

        got = 0;
        while (bare_row(loop.events)) {
            struct account *account = account_of(read,
                                                 bare_column(loop.events, 1));

            got++;
            position = sqlite3_column_int64(loop.events, 0);
            saga_apply(account,
                       (const char *)sqlite3_column_text(loop.events, 2),
                       (const char *)sqlite3_column_text(loop.events, 3));
        }
        for (int i = 0; i < page.count; i++)
            write_saga(insert, update, page.order[i]);
        page_clear();
        bare_loop_commit(&loop, got, position);
    } while (got > 0);

    sqlite3_finalize(read);
    sqlite3_finalize(insert);
    sqlite3_finalize(update);
    bare_loop_close(&loop);
    return 0;
}
