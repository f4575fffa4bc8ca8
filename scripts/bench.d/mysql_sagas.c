/*
 * mysql_sagas URL -- the account saga: pages of 500, the sagas' rows read
 * together once per page, folded, and written back under their version, with
 * the checkpoints in the same transaction.
 */
#include "bare_mysql.h"
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

static void read_sagas(MYSQL *db)
{
    static struct bare_text sql;
    MYSQL_RES *result;
    MYSQL_ROW row;
    int fresh;

    sql.size = 0;
    bare_puts(&sql, "SELECT saga_id, id, version, completed_at, state_json FROM"
                    " SAGA_INSTANCES WHERE saga_type = '" SAGA_TYPE
                    "' AND saga_id IN (");
    for (int i = 0; i < page.count; i++) {
        bare_puts(&sql, i > 0 ? "," : "");
        bare_quote(&sql,
                   (struct slice){page.order[i]->key, page.order[i]->key_size});
    }
    bare_puts(&sql, ")");
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        struct account *account = page_saga(
            bare_cell(row, mysql_fetch_lengths(result), 0), &fresh);

        saga_take(account, strtoll(row[2], NULL, 10), row[3] != NULL, row[4]);
        memcpy(account->message_id, row[1], 37);
    }
    mysql_free_result(result);
}

static void write_saga(struct account *account, int at)
{
    const struct saga *saga = saga_of(account);
    struct bare_bulk *bulk;
    int column = 0, size;

    if (!saga->changed)
        return;
    size = account_state(account, writes.states[at]);
    snprintf(writes.times[at], sizeof(writes.times[at]), "%s",
             saga->closed ? bare_time(' ', "") : "");
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
    bulk = saga->closed ? &writes.close : &writes.update;
    bare_bulk_text(bulk, column++, writes.states[at], (size_t)size);
    bare_bulk_int(bulk, column++, saga->version + 1);
    if (saga->closed)
        bare_bulk_text(bulk, column++, writes.times[at],
                       strlen(writes.times[at]));
    bare_bulk_text(bulk, column++, account->message_id, 36);
    bare_bulk_int(bulk, column, saga->version);
    bulk->rows++;
}

int main(int argc, char **argv)
{
    MYSQL *db;
    int got;

    if (argc != 2)
        bare_die("usage", "mysql_sagas URL");
    db = bare_open(argv[1]);
    bare_mark(db);
    prepare(db);
    do {
        MYSQL_RES *events = bare_page(db, SAGA_TYPE);
        MYSQL_ROW row;
        int64_t position = 0;
        int fresh;

        got = (int)mysql_num_rows(events);
        while ((row = mysql_fetch_row(events)) != NULL)
            (void)page_saga(bare_cell(row, mysql_fetch_lengths(events), 1),
                            &fresh);
        if (got > 0)
            read_sagas(db);
        mysql_data_seek(events, 0);
        while ((row = mysql_fetch_row(events)) != NULL) {
            position = strtoll(row[0], NULL, 10);
            saga_apply(page_saga(bare_cell(row, mysql_fetch_lengths(events), 1),
                                 &fresh),
                       row[2], row[4]);
        }
        mysql_free_result(events);
        for (int i = 0; i < page.count; i++)
            write_saga(page.order[i], i);
        bare_bulk_run(db, &writes.update);
        bare_bulk_run(db, &writes.close);
        bare_bulk_run(db, &writes.insert);
        page_clear();
        if (got > 0)
            bare_commit(db, SAGA_TYPE, position);
        else
            bare_do(db, "ROLLBACK");
    } while (got > 0);
    mysql_close(db);
    return 0;
}
