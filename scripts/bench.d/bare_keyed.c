/*
 * bare_keyed DATABASE -- the account summary: pages of 500, each account's row
 * read once per page, folded, and written back under its message_id, with the
 * checkpoints in the same transaction.
 */
#include "bare.h"

#define SLOTS 2048 /* more than twice a page */

struct account {
    char key[BARE_KEY_MAX];
    int key_size; /* 0: the slot is free */
    int stored;   /* a row is there */
    int alive;    /* a row is to be there */
    int64_t row;  /* its rowid: found once, used for the update */
    int64_t balance;
    char iban[64];
    int iban_size;
    char message_id[37]; /* as read */
};

struct page {
    struct account slots[SLOTS];
    struct account *order[BARE_BATCH];
    int count;
};

static struct page page;

static void keep_iban(struct account *account, struct slice iban)
{
    if (iban.size >= (int)sizeof(account->iban))
        bare_die("iban", "too long");
    memcpy(account->iban, iban.data, (size_t)iban.size);
    account->iban[iban.size] = '\0';
    account->iban_size = iban.size;
}

/* The account of this page, read from its row at first sight. */
static struct account *page_account(sqlite3_stmt *read, struct slice key)
{
    uint32_t at = bare_fnv1a(key) & (SLOTS - 1);
    struct account *account;

    while ((account = &page.slots[at])->key_size != 0) {
        if (account->key_size == key.size &&
            memcmp(account->key, key.data, (size_t)key.size) == 0)
            return account;
        at = (at + 1) & (SLOTS - 1);
    }
    if (key.size == 0 || key.size >= BARE_KEY_MAX)
        bare_die("key", "bad length");
    memcpy(account->key, key.data, (size_t)key.size);
    account->key_size = key.size;
    page.order[page.count++] = account;
    account->stored = account->alive = 0;
    account->balance = 0;
    account->iban_size = 0;
    bare_bind(read, 1, key);
    while (bare_row(read)) {
        const char *state = (const char *)sqlite3_column_text(read, 1);

        account->stored = account->alive = 1;
        account->row = sqlite3_column_int64(read, 2);
        memcpy(account->message_id, sqlite3_column_text(read, 0), 37);
        account->balance = bare_number(state, "\"balance\":");
        keep_iban(account, bare_text(state, "\"iban\":\""));
    }
    return account;
}

static void apply(struct account *account, const char *type,
                  const char *payload)
{
    const char *word = type + 8; /* after "account." */

    switch (*word) {
    case 'O':
        account->alive = 1;
        keep_iban(account, bare_text(payload, "\"iban\":\""));
        break;
    case 'D':
        account->alive = 1;
        account->balance += bare_number(payload, "\"amount\":");
        break;
    case 'W':
        account->alive = 1;
        account->balance -= bare_number(payload, "\"amount\":");
        break;
    case 'C':
        account->alive = 0;
        account->balance = 0;
        account->iban_size = 0;
        break;
    default:
        bare_die(type, "unexpected type");
    }
}

struct writes {
    sqlite3_stmt *insert, *update, *drop, *epoch, *drop_epoch;
};

static void write_account(struct writes *writes, struct account *account)
{
    struct slice key = {account->key, account->key_size};
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
    size = snprintf(state, sizeof(state), "{\"balance\":%lld,\"iban\":\"%s\"}",
                    (long long)account->balance, account->iban);
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
    sqlite3_stmt *begin, *commit, *checkpoint, *move, *events, *read;
    struct writes writes;
    char consumer[37];
    sqlite3 *db;
    int got;

    if (argc != 2)
        bare_die("usage", "bare_keyed DATABASE");
    db = bare_open(argv[1]);
    bare_consumer(db, "account-summary", consumer);
    bare_mark(db);
    begin = bare_prepare(db, "BEGIN IMMEDIATE");
    commit = bare_prepare(db, "COMMIT");
    checkpoint = bare_prepare(db, BARE_CHECKPOINT_READ);
    move = bare_prepare(db, BARE_CHECKPOINT_MOVE);
    events = bare_prepare(
        db, "SELECT global_position, aggregate_id, event_type, payload"
            " FROM EVENT_STORE WHERE global_position > ?1"
            " ORDER BY global_position LIMIT 500");
    read = bare_prepare(db,
                        "SELECT message_id, state, rowid FROM account_summary"
                        " WHERE read_model_id = ?1");
    /* The IBAN never changes: leaving it out spares its index. */
    writes.update = bare_prepare(
        db, "UPDATE account_summary SET message_id = ?3, state = ?4,"
            " balance = ?5 WHERE rowid = ?1 AND message_id = ?2");
    writes.insert = bare_prepare(
        db, "INSERT INTO account_summary (read_model_id, message_id, state,"
            " iban, balance) VALUES (?1, ?2, ?3, ?4, ?5)");
    writes.drop = bare_prepare(db, "DELETE FROM account_summary"
                                   " WHERE read_model_id = ?1"
                                   " AND message_id = ?2");
    writes.epoch = bare_prepare(
        db, "INSERT INTO READ_MODEL_EPOCHS (projection, read_model_key, epoch)"
            " VALUES ('account-summary', ?1, 0)");
    writes.drop_epoch = bare_prepare(
        db, "DELETE FROM READ_MODEL_EPOCHS"
            " WHERE projection = 'account-summary' AND read_model_key = ?1");
    sqlite3_bind_text(checkpoint, 1, consumer, 36, SQLITE_STATIC);
    sqlite3_bind_text(move, 1, consumer, 36, SQLITE_STATIC);

    do {
        int64_t position;

        got = 0;
        bare_run(begin);
        position = bare_checkpoint(checkpoint);
        sqlite3_bind_int64(events, 1, position);
        while (bare_row(events)) {
            struct account *account = page_account(read,
                                                   bare_column(events, 1));

            got++;
            position = sqlite3_column_int64(events, 0);
            apply(account, (const char *)sqlite3_column_text(events, 2),
                  (const char *)sqlite3_column_text(events, 3));
        }
        for (int i = 0; i < page.count; i++) {
            write_account(&writes, page.order[i]);
            page.order[i]->key_size = 0;
        }
        page.count = 0;
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
    sqlite3_finalize(writes.update);
    sqlite3_finalize(writes.insert);
    sqlite3_finalize(writes.drop);
    sqlite3_finalize(writes.epoch);
    sqlite3_finalize(writes.drop_epoch);
    if (sqlite3_close(db) != SQLITE_OK)
        bare_die(argv[1], sqlite3_errmsg(db));
    return 0;
}
