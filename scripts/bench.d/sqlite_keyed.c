/*
 * sqlite_keyed DATABASE -- the account summary: pages of 500, each account's
 * row read once per page, folded, and written back under its message_id, with
 * the checkpoints in the same transaction.
 */
#include "bare_accounts.h"
#include "bare_sqlite.h"

/* The account of this page, read from its row at first sight. */
static struct account *account_of(sqlite3_stmt *read, struct slice key)
{
    int fresh;
    struct account *account = page_account(key, &fresh);

    if (!fresh)
        return account;
    bare_bind(read, 1, key);
    while (bare_row(read)) {
        account_take(account, (const char *)sqlite3_column_text(read, 1));
        account->row = sqlite3_column_int64(read, 2);
        memcpy(account->message_id, sqlite3_column_text(read, 0), 37);
    }
    return account;
}

struct writes {
    sqlite3_stmt *insert, *update, *drop, *epoch, *drop_epoch;
};

static void write_account(struct writes *writes, struct account *account)
{
    struct slice key = account_key(account);
    char state[160];
    char message_id[37];
    int size;

    if (!account->alive) {
        if (account->stored) {
            bare_bind(writes->drop, 1, key);
            sqlite3_bind_text(writes->drop, 2, account->message_id, 36,
                              SQLITE_STATIC);
            bare_run(writes->drop);
            bare_bind(writes->drop_epoch, 1, key);
            bare_run(writes->drop_epoch);
        }
        return;
    }
    bare_uuid(message_id);
    size = account_state(account, state);
    if (account->stored) {
        sqlite3_bind_int64(writes->update, 1, account->row);
        sqlite3_bind_text(writes->update, 2, account->message_id, 36,
                          SQLITE_STATIC);
        sqlite3_bind_text(writes->update, 3, message_id, 36, SQLITE_STATIC);
        sqlite3_bind_text(writes->update, 4, state, size, SQLITE_STATIC);
        sqlite3_bind_int64(writes->update, 5, account->balance);
        bare_run(writes->update);
        if (sqlite3_changes(sqlite3_db_handle(writes->update)) != 1)
            bare_die(account->key, "was changed by another program");
        return;
    }
    bare_bind(writes->insert, 1, key);
    sqlite3_bind_text(writes->insert, 2, message_id, 36, SQLITE_STATIC);
    sqlite3_bind_text(writes->insert, 3, state, size, SQLITE_STATIC);
    sqlite3_bind_text(writes->insert, 4, account->iban, account->iban_size,
                      SQLITE_STATIC);
    sqlite3_bind_int64(writes->insert, 5, account->balance);
    bare_run(writes->insert);
    bare_bind(writes->epoch, 1, key);
    bare_run(writes->epoch);
}

int main(int argc, char **argv)
{
    struct bare_loop loop;
    sqlite3_stmt *read;
    struct writes writes;
    int got;

    if (argc != 2)
        bare_die("usage", "sqlite_keyed DATABASE");
    bare_loop_open(&loop, argv[1], "account-summary",
                   "aggregate_id, event_type, payload");
    read = bare_prepare(loop.db,
                        "SELECT message_id, state, rowid FROM account_summary"
                        " WHERE read_model_id = ?1");
    /* The IBAN never changes: leaving it out spares its index. */
    writes.update = bare_prepare(
        loop.db, "UPDATE account_summary SET message_id = ?3, state = ?4,"
                 " balance = ?5 WHERE rowid = ?1 AND message_id = ?2");
    writes.insert = bare_prepare(
        loop.db,
        "INSERT INTO account_summary (read_model_id, message_id, state,"
        " iban, balance) VALUES (?1, ?2, ?3, ?4, ?5)");
    writes.drop = bare_prepare(loop.db, "DELETE FROM account_summary"
                                        " WHERE read_model_id = ?1"
                                        " AND message_id = ?2");
    writes.epoch = bare_prepare(
        loop.db,
        "INSERT INTO READ_MODEL_EPOCHS (projection, read_model_key, epoch)"
        " VALUES ('account-summary', ?1, 0)");
    writes.drop_epoch = bare_prepare(
        loop.db,
        "DELETE FROM READ_MODEL_EPOCHS"
        " WHERE projection = 'account-summary' AND read_model_key = ?1");

    do {
        int64_t position = bare_loop_begin(&loop);

        got = 0;
        while (bare_row(loop.events)) {
            struct account *account = account_of(read,
                                                 bare_column(loop.events, 1));

            got++;
            position = sqlite3_column_int64(loop.events, 0);
            apply(account, (const char *)sqlite3_column_text(loop.events, 2),
                  (const char *)sqlite3_column_text(loop.events, 3));
        }
        for (int i = 0; i < page.count; i++)
            write_account(&writes, page.order[i]);
        page_clear();
        bare_loop_commit(&loop, got, position);
    } while (got > 0);

    sqlite3_finalize(read);
    sqlite3_finalize(writes.update);
    sqlite3_finalize(writes.insert);
    sqlite3_finalize(writes.drop);
    sqlite3_finalize(writes.epoch);
    sqlite3_finalize(writes.drop_epoch);
    bare_loop_close(&loop);
    return 0;
}
