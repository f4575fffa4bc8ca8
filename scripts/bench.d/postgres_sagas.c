/*
 * postgres_sagas URL -- the account saga: pages of 500, the sagas' rows read
 * together once per page, folded, and written back under their version, with
 * the checkpoints in the same transaction.
 */
#include "bare_postgres.h"
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

static struct slice key_of(const struct account *account)
{
    return (struct slice){account->key, account->key_size};
}

static void read_sagas(PGconn *db)
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

        saga_take(account, bare_int(result, i, 2), !PQgetisnull(result, i, 3),
                  PQgetvalue(result, i, 4));
        memcpy(account->message_id, PQgetvalue(result, i, 1), 16);
    }
    PQclear(result);
}

enum { IDS, KEYS, STATES, VERSIONS, CLOSED, ARRAYS };

static const uint32_t oids[ARRAYS] = {OID_UUID, OID_TEXT, OID_TEXT, OID_INT8,
                                      OID_INT8};

static void add_row(struct bare_array *arrays, struct account *account)
{
    const struct saga *saga = saga_of(account);
    char id[37], state[160];

    if (!account->stored) {
        bare_uuid(id);
        bare_uuid_bytes(id, account->message_id);
    }
    bare_array_add(&arrays[IDS], (struct slice){account->message_id, 16});
    bare_array_add(&arrays[KEYS], key_of(account));
    bare_array_add(&arrays[STATES],
                   (struct slice){state, account_state(account, state)});
    bare_array_int(&arrays[VERSIONS],
                   account->stored ? saga->version : bare_now());
    bare_array_int(&arrays[CLOSED], saga->closed ? bare_now() : 0);
}

static void write_rows(PGconn *db, const char *name, struct bare_array *arrays,
                       const int *which, int count)
{
    struct bare_params params = {.count = 0};

    if (arrays[KEYS].count == 0)
        return;
    for (int i = 0; i < count; i++)
        bare_array_param(&params, &arrays[which[i]]);
    bare_change(db, name, &params, (int)arrays[KEYS].count);
}

static void write_sagas(PGconn *db)
{
    static struct bare_array updates[ARRAYS], inserts[ARRAYS];

    for (int i = 0; i < ARRAYS; i++) {
        bare_array_start(&updates[i], oids[i]);
        bare_array_start(&inserts[i], oids[i]);
    }
    for (int i = 0; i < page.count; i++)
        if (saga_of(page.order[i])->changed)
            add_row(page.order[i]->stored ? updates : inserts, page.order[i]);
    write_rows(db, "update", updates,
               (const int[]){IDS, STATES, VERSIONS, CLOSED}, 4);
    write_rows(db, "insert", inserts,
               (const int[]){IDS, KEYS, STATES, VERSIONS, CLOSED}, 5);
}

int main(int argc, char **argv)
{
    PGconn *db;
    int got;

    if (argc != 2)
        bare_die("usage", "postgres_sagas URL");
    db = bare_open(argv[1]);
    prepare(db);
    do {
        PGresult *events = bare_page(db, SAGA_TYPE);
        int fresh;

        got = PQntuples(events);
        for (int i = 0; i < got; i++)
            (void)page_saga(bare_column(events, i, 1), &fresh);
        if (got > 0)
            read_sagas(db);
        for (int i = 0; i < got; i++)
            saga_apply(page_saga(bare_column(events, i, 1), &fresh),
                       PQgetvalue(events, i, 2), PQgetvalue(events, i, 4));
        write_sagas(db);
        page_clear();
        if (got > 0)
            bare_commit(db, SAGA_TYPE, bare_int(events, got - 1, 0));
        else
            bare_do(db, "ROLLBACK");
        PQclear(events);
    } while (got > 0);
    PQfinish(db);
    return 0;
}
