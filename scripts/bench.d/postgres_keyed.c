/*
 * postgres_keyed URL -- the account summary: pages of 500, the accounts' rows
 * read together once per page, folded, and written back under their
 * message_id, with the checkpoints in the same transaction.
 */
#include "bare_accounts.h"
#include "bare_postgres.h"

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

static struct slice key_of(const struct account *account)
{
    return (struct slice){account->key, account->key_size};
}

static void read_accounts(PGconn *db)
{
    static struct bare_array keys;
    struct bare_params params = {.count = 0};
    PGresult *result;

    bare_array_start(&keys, OID_TEXT);
    for (int i = 0; i < page.count; i++)
        bare_array_add(&keys, key_of(page.order[i]));
    bare_array_param(&params, &keys);
    result = bare_run(db, "read", &params);
    for (int i = 0; i < PQntuples(result); i++) {
        struct account *account = page.order[bare_int(result, i, 0) - 1];

        account_take(account, PQgetvalue(result, i, 2));
        memcpy(account->message_id, PQgetvalue(result, i, 1), 16);
    }
    PQclear(result);
}

enum { KEYS, WAS, IDS, STATES, IBANS, BALANCES, ARRAYS };

static const uint32_t oids[ARRAYS] = {OID_TEXT, OID_UUID, OID_UUID,
                                      OID_TEXT, OID_TEXT, OID_INT8};

static void add_row(struct bare_array *arrays, const struct account *account)
{
    char id[37], bytes[16], state[160];

    bare_uuid(id);
    bare_uuid_bytes(id, bytes);
    bare_array_add(&arrays[KEYS], key_of(account));
    bare_array_add(&arrays[WAS], (struct slice){account->message_id, 16});
    bare_array_add(&arrays[IDS], (struct slice){bytes, 16});
    bare_array_add(&arrays[STATES],
                   (struct slice){state, account_state(account, state)});
    bare_array_add(&arrays[IBANS],
                   (struct slice){account->iban, account->iban_size});
    bare_array_int(&arrays[BALANCES], account->balance);
}

static void write_rows(PGconn *db, const char *name, struct bare_array *arrays,
                       const int *which, int count)
{
    struct bare_params params = {.count = 0};

    for (int i = 0; i < count; i++)
        bare_array_param(&params, &arrays[which[i]]);
    bare_change(db, name, &params, (int)arrays[KEYS].count);
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
    if (drops[KEYS].count > 0) {
        write_rows(db, "drop", drops, (const int[]){KEYS, WAS}, 2);
        write_rows(db, "drop_epoch", drops, (const int[]){KEYS}, 1);
    }
    if (updates[KEYS].count > 0)
        write_rows(db, "update", updates,
                   (const int[]){KEYS, WAS, IDS, STATES, BALANCES}, 5);
    if (inserts[KEYS].count > 0) {
        write_rows(db, "insert", inserts,
                   (const int[]){KEYS, IDS, STATES, IBANS, BALANCES}, 5);
        write_rows(db, "epoch", inserts, (const int[]){KEYS}, 1);
    }
}

int main(int argc, char **argv)
{
    PGconn *db;
    int got;

    if (argc != 2)
        bare_die("usage", "postgres_keyed URL");
    db = bare_open(argv[1]);
    prepare(db);
    do {
        PGresult *events = bare_page(db, CONSUMER);
        int fresh;

        got = PQntuples(events);
        for (int i = 0; i < got; i++)
            (void)page_account(bare_column(events, i, 1), &fresh);
        if (got > 0)
            read_accounts(db);
        for (int i = 0; i < got; i++)
            apply(page_account(bare_column(events, i, 1), &fresh),
                  PQgetvalue(events, i, 2), PQgetvalue(events, i, 4));
        write_accounts(db);
        page_clear();
        if (got > 0)
            bare_commit(db, CONSUMER, bare_int(events, got - 1, 0));
        else
            bare_do(db, "ROLLBACK");
        PQclear(events);
    } while (got > 0);
    PQfinish(db);
    return 0;
}
