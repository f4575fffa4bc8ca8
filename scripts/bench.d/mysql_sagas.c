/*
 * mysql_sagas URL -- the account saga: pages of 500, the sagas' rows read
 * together once per page, folded, and written back under their version, with
 * the checkpoints in the same transaction.
 */
#include "bare_accounts_mysql.h"
#include "bare_sagas.h"

struct writes {
    struct bare_bulk update, close, insert;
    /* texts of the batch, until it is written */
    char states[BARE_BATCH][160];
    char times[BARE_BATCH][48];
};

static struct writes writes;

static void prepare(MYSQL *db)
{
    bare_prepare(db, &writes.update,
                 "UPDATE SAGA_INSTANCES SET state_json = ?, version = ?"
                 " WHERE id = ? AND version = ?");
    bare_prepare(db, &writes.close,
                 "UPDATE SAGA_INSTANCES SET state_json = ?, version = ?,"
                 " completed_at = ? WHERE id = ? AND version = ?");
    bare_prepare(db, &writes.insert,
                 "INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id,"
                 " state_json, version, completed_at) VALUES (?, '" SAGA_TYPE
                 "', ?, ?, ?, NULLIF(?, ''))");
}

static void take(struct account *account, MYSQL_ROW row)
{
    saga_take(account, strtoll(row[2], NULL, 10), row[3] != NULL, row[4]);
    memcpy(account->message_id, row[1], 37);
}

static void write_saga(struct account *account, int at)
{
    struct bare_bulk *bulk;
    int column = 0, size;

    if (!account->changed)
        return;
    size = account_state(account, writes.states[at]);
    snprintf(writes.times[at], sizeof(writes.times[at]), "%s",
             account->closed ? bare_time(' ', "") : "");
    if (!account->stored) {
        bulk = &writes.insert;
        bare_uuid(account->message_id);
        bare_bulk_text(bulk, 0, account->message_id, 36);
        bare_bulk_text(bulk, 1, account->key, (size_t)account->key_size);
        bare_bulk_text(bulk, 2, writes.states[at], (size_t)size);
        bare_bulk_int(bulk, 3, bare_now());
        bare_bulk_text(bulk, 4, writes.times[at], strlen(writes.times[at]));
        bulk->rows++;
        return;
    }
    bulk = account->closed ? &writes.close : &writes.update;
    bare_bulk_text(bulk, column++, writes.states[at], (size_t)size);
    bare_bulk_int(bulk, column++, account->version + 1);
    if (account->closed)
        bare_bulk_text(bulk, column++, writes.times[at],
                       strlen(writes.times[at]));
    bare_bulk_text(bulk, column++, account->message_id, 36);
    bare_bulk_int(bulk, column, account->version);
    bulk->rows++;
}

static void write_sagas(MYSQL *db)
{
    for (int i = 0; i < page.count; i++)
        write_saga(page.order[i], i);
    bare_bulk_run(db, &writes.update);
    bare_bulk_run(db, &writes.close);
    bare_bulk_run(db, &writes.insert);
}

int main(int argc, char **argv)
{
    const struct accounts_work work = {
        .consumer = SAGA_TYPE,
        .read = "SELECT saga_id, id, version, completed_at, state_json FROM"
                " SAGA_INSTANCES WHERE saga_type = '" SAGA_TYPE
                "' AND saga_id IN (",
        .take = take,
        .apply = saga_apply,
        .write = write_sagas};
    MYSQL *db;

    if (argc != 2)
        bare_die("usage", "mysql_sagas URL");
    db = bare_open(argv[1]);
    bare_mark(db);
    prepare(db);
    accounts_run(db, &work);
    mysql_close(db);
    return 0;
}
