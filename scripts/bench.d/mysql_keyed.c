/*
 * mysql_keyed URL -- the account summary: pages of 500, the accounts' rows read
 * together once per page, folded, and written back under their message_id, with
 * the checkpoints in the same transaction.
 */
#include "bare_accounts_mysql.h"

#define CONSUMER "account-summary"

struct writes {
    struct bare_bulk update, insert, drop;
    struct bare_text epochs, drop_epochs;
    /* texts of the batch, until it is written */
    char ids[BARE_BATCH][37];
    char states[BARE_BATCH][160];
};

static struct writes writes;

static void prepare(MYSQL *db)
{
    /* The IBAN never changes: leaving it out spares its index. */
    bare_prepare(db, &writes.update,
                 "UPDATE account_summary SET message_id = ?, state = ?,"
                 " balance = ? WHERE read_model_id = ? AND message_id = ?");
    bare_prepare(db, &writes.insert,
                 "INSERT INTO account_summary (read_model_id, message_id,"
                 " state, iban, balance) VALUES (?, ?, ?, ?, ?)");
    bare_prepare(db, &writes.drop,
                 "DELETE FROM account_summary WHERE read_model_id = ?"
                 " AND message_id = ?");
}

static void take(struct account *account, MYSQL_ROW row)
{
    account_take(account, row[2]);
    memcpy(account->message_id, row[1], 37);
}

static void put_key(struct bare_text *sql, struct slice key, const char *end)
{
    bare_puts(sql, sql->rows++ > 0 ? ",('" CONSUMER "'," : "('" CONSUMER "',");
    bare_quote(sql, key);
    bare_puts(sql, end);
}

static void write_account(struct account *account, int at)
{
    struct bare_bulk *bulk;
    int size;

    if (!account->alive) {
        if (!account->stored)
            return;
        bulk = &writes.drop;
        bare_bulk_text(bulk, 0, account->key, (size_t)account->key_size);
        bare_bulk_text(bulk, 1, account->message_id, 36);
        bulk->rows++;
        put_key(&writes.drop_epochs, account_key(account), ")");
        return;
    }
    bare_uuid(writes.ids[at]);
    size = account_state(account, writes.states[at]);
    bulk = account->stored ? &writes.update : &writes.insert;
    if (account->stored) {
        bare_bulk_text(bulk, 0, writes.ids[at], 36);
        bare_bulk_text(bulk, 1, writes.states[at], (size_t)size);
        bare_bulk_int(bulk, 2, account->balance);
        bare_bulk_text(bulk, 3, account->key, (size_t)account->key_size);
        bare_bulk_text(bulk, 4, account->message_id, 36);
    } else {
        bare_bulk_text(bulk, 0, account->key, (size_t)account->key_size);
        bare_bulk_text(bulk, 1, writes.ids[at], 36);
        bare_bulk_text(bulk, 2, writes.states[at], (size_t)size);
        bare_bulk_text(bulk, 3, account->iban, (size_t)account->iban_size);
        bare_bulk_int(bulk, 4, account->balance);
        put_key(&writes.epochs, account_key(account), ",0)");
    }
    bulk->rows++;
}

static void write_accounts(MYSQL *db)
{
    struct bare_text *epochs = &writes.epochs, *drops = &writes.drop_epochs;

    epochs->size = drops->size = 0;
    epochs->rows = drops->rows = 0;
    bare_puts(epochs, "INSERT INTO READ_MODEL_EPOCHS (projection,"
                      " read_model_key, epoch) VALUES ");
    bare_puts(drops, "DELETE FROM READ_MODEL_EPOCHS WHERE (projection,"
                     " read_model_key) IN (");
    for (int i = 0; i < page.count; i++)
        write_account(page.order[i], i);
    bare_puts(drops, ")");
    bare_bulk_run(db, &writes.drop);
    if (drops->rows > 0)
        bare_run(db, drops);
    bare_bulk_run(db, &writes.update);
    bare_bulk_run(db, &writes.insert);
    if (epochs->rows > 0)
        bare_run(db, epochs);
}

int main(int argc, char **argv)
{
    const struct accounts_work work = {
        .consumer = CONSUMER,
        .read = "SELECT read_model_id, message_id, state FROM account_summary"
                " WHERE read_model_id IN (",
        .take = take,
        .apply = apply,
        .write = write_accounts};
    MYSQL *db;

    if (argc != 2)
        bare_die("usage", "mysql_keyed URL");
    db = bare_open(argv[1]);
    bare_mark(db);
    prepare(db);
    accounts_run(db, &work);
    mysql_close(db);
    return 0;
}
