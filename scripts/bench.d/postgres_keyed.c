/*
 * postgres_keyed URL -- the account summary: pages of 500, the accounts' rows
 * read together once per page, folded, and written back under their
 * message_id, with the checkpoints in the same transaction.
 */
#include "bare_accounts_postgres.h"

#define CONSUMER "account-summary"

static void prepare(PGconn *db)
{
    bare_prepare_page(db);
    bare_prepare(db, "read",
                 "SELECT u.n, t.message_id, t.state FROM unnest($1::text[])"
                 " WITH ORDINALITY AS u(k, n) JOIN account_summary AS t"
                 " ON t.read_model_id = u.k");
    /* The IBAN never changes: leaving it out spares its index. */
    bare_prepare(db, "update",
                 "UPDATE account_summary AS t SET message_id = u.m,"
                 " state = u.s, balance = u.b FROM unnest($1::text[],"
                 " $2::uuid[], $3::uuid[], $4::text[], $5::bigint[])"
                 " AS u(k, was, m, s, b)"
                 " WHERE t.read_model_id = u.k AND t.message_id = u.was");
    bare_prepare(db, "insert",
                 "INSERT INTO account_summary (read_model_id, message_id,"
                 " state, iban, balance) SELECT * FROM unnest($1::text[],"
                 " $2::uuid[], $3::text[], $4::text[], $5::bigint[])");
    bare_prepare(db, "epoch",
                 "INSERT INTO read_model_epochs (projection, read_model_key,"
                 " epoch) SELECT '" CONSUMER "', k, 0"
                 " FROM unnest($1::text[]) AS u(k)");
    bare_prepare(db, "drop",
                 "DELETE FROM account_summary AS t USING"
                 " unnest($1::text[], $2::uuid[]) AS u(k, was)"
                 " WHERE t.read_model_id = u.k AND t.message_id = u.was");
    bare_prepare(db, "drop_epoch",
                 "DELETE FROM read_model_epochs AS e USING"
                 " unnest($1::text[]) AS u(k) WHERE e.projection ="
                 " '" CONSUMER "' AND e.read_model_key = u.k");
}

static void take(struct account *account, const PGresult *rows, int row)
{
    account_take(account, PQgetvalue(rows, row, 2));
    memcpy(account->message_id, PQgetvalue(rows, row, 1), 16);
}

enum { KEYS, WAS, IDS, STATES, IBANS, BALANCES, ARRAYS };

static const uint32_t oids[ARRAYS] = {OID_TEXT, OID_UUID, OID_UUID,
                                      OID_TEXT, OID_TEXT, OID_INT8};

static void add_row(struct bare_array *arrays, const struct account *account)
{
    char id[37], bytes[16], state[160];

    bare_uuid(id);
    bare_uuid_bytes(id, bytes);
    bare_array_add(&arrays[KEYS], account_key(account));
    bare_array_add(&arrays[WAS], (struct slice){account->message_id, 16});
    bare_array_add(&arrays[IDS], (struct slice){bytes, 16});
    bare_array_add(&arrays[STATES],
                   (struct slice){state, account_state(account, state)});
    bare_array_add(&arrays[IBANS],
                   (struct slice){account->iban, account->iban_size});
    bare_array_int(&arrays[BALANCES], account->balance);
}

static void write_accounts(PGconn *db)
{
    static struct bare_array updates[ARRAYS], inserts[ARRAYS], drops[ARRAYS];

    for (int i = 0; i < ARRAYS; i++) {
        bare_array_start(&updates[i], oids[i]);
        bare_array_start(&inserts[i], oids[i]);
        bare_array_start(&drops[i], oids[i]);
    }
    for (int i = 0; i < page.count; i++) {
        const struct account *account = page.order[i];

        if (!account->alive && !account->stored)
            continue;
        add_row(!account->alive   ? drops
                : account->stored ? updates
                                  : inserts,
                account);
    }
    accounts_write(db, "drop", drops, (const int[]){KEYS, WAS}, 2);
    accounts_write(db, "drop_epoch", drops, (const int[]){KEYS}, 1);
    accounts_write(db, "update", updates,
                   (const int[]){KEYS, WAS, IDS, STATES, BALANCES}, 5);
    accounts_write(db, "insert", inserts,
                   (const int[]){KEYS, IDS, STATES, IBANS, BALANCES}, 5);
    accounts_write(db, "epoch", inserts, (const int[]){KEYS}, 1);
}

int main(int argc, char **argv)
{
    const struct accounts_work work = {.consumer = CONSUMER,
                                       .take = take,
                                       .apply = apply,
                                       .write = write_accounts};
    PGconn *db;

    if (argc != 2)
        bare_die("usage", "postgres_keyed URL");
    db = bare_open(argv[1]);
    prepare(db);
    accounts_run(db, &work);
    PQfinish(db);
    return 0;
}
