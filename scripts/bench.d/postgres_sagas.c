/*
 * postgres_sagas URL -- the account saga: pages of 500, the sagas' rows read
 * together once per page, folded, and written back under their version, with
 * the checkpoints in the same transaction.
 */
#include "bare_accounts_postgres.h"
#include "bare_sagas.h"

static void prepare(PGconn *db)
{
    bare_prepare_page(db);
    bare_prepare(db, "read",
                 "SELECT u.n, t.id, t.version, t.completed_at, t.state_json"
                 " FROM unnest($1::text[]) WITH ORDINALITY AS u(k, n)"
                 " CROSS JOIN LATERAL (SELECT * FROM saga_instances AS s"
                 " WHERE s.saga_type = '" SAGA_TYPE "' AND s.saga_id = u.k"
                 " OFFSET 0) AS t");
    bare_prepare(db, "update",
                 "UPDATE saga_instances AS t SET state_json = u.s,"
                 " version = u.v + 1, completed_at = CASE WHEN u.c > 0 THEN"
                 " 'epoch'::timestamptz + u.c * '1 us'::interval END"
                 " FROM unnest($1::uuid[], $2::text[], $3::bigint[],"
                 " $4::bigint[]) AS u(k, s, v, c)"
                 " WHERE t.id = u.k AND t.version = u.v");
    bare_prepare(db, "insert",
                 "INSERT INTO saga_instances (id, saga_type, saga_id,"
                 " state_json, version, completed_at) SELECT u.k,"
                 " '" SAGA_TYPE "', u.i, u.s, u.v, CASE WHEN u.c > 0 THEN"
                 " 'epoch'::timestamptz + u.c * '1 us'::interval END"
                 " FROM unnest($1::uuid[], $2::text[], $3::text[],"
                 " $4::bigint[], $5::bigint[]) AS u(k, i, s, v, c)");
}

static void take(struct account *account, const PGresult *rows, int row)
{
    saga_take(account, bare_int(rows, row, 2), !PQgetisnull(rows, row, 3),
              PQgetvalue(rows, row, 4));
    memcpy(account->message_id, PQgetvalue(rows, row, 1), 16);
}

enum { IDS, KEYS, STATES, VERSIONS, CLOSED, ARRAYS };

static const uint32_t oids[ARRAYS] = {OID_UUID, OID_TEXT, OID_TEXT, OID_INT8,
                                      OID_INT8};

static void add_row(struct bare_array *arrays, struct account *account)
{
    char id[37], state[160];

    if (!account->stored) {
        bare_uuid(id);
        bare_uuid_bytes(id, account->message_id);
    }
    bare_array_add(&arrays[IDS], (struct slice){account->message_id, 16});
    bare_array_add(&arrays[KEYS], account_key(account));
    bare_array_add(&arrays[STATES],
                   (struct slice){state, account_state(account, state)});
    bare_array_int(&arrays[VERSIONS],
                   account->stored ? account->version : bare_now());
    bare_array_int(&arrays[CLOSED], account->closed ? bare_now() : 0);
}

static void write_sagas(PGconn *db)
{
    static struct bare_array updates[ARRAYS], inserts[ARRAYS];

    for (int i = 0; i < ARRAYS; i++) {
        bare_array_start(&updates[i], oids[i]);
        bare_array_start(&inserts[i], oids[i]);
    }
    for (int i = 0; i < page.count; i++)
        if (page.order[i]->changed)
            add_row(page.order[i]->stored ? updates : inserts, page.order[i]);
    accounts_write(db, "update", updates,
                   (const int[]){IDS, STATES, VERSIONS, CLOSED}, 4);
    accounts_write(db, "insert", inserts,
                   (const int[]){IDS, KEYS, STATES, VERSIONS, CLOSED}, 5);
}

int main(int argc, char **argv)
{
    const struct accounts_work work = {.consumer = SAGA_TYPE,
                                       .take = take,
                                       .apply = saga_apply,
                                       .write = write_sagas};
    PGconn *db;

    if (argc != 2)
        bare_die("usage", "postgres_sagas URL");
    db = bare_open(argv[1]);
    prepare(db);
    accounts_run(db, &work);
    PQfinish(db);
    return 0;
}
