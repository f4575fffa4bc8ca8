/*
 * postgres_deadlines URL -- fires what is due: pages of 500, the sagas' rows
 * read together, the deadlines deleted together, and the rows written back
 * under their version.
 */
#include "bare_deadlines.h"
#include "bare_postgres.h"

static void prepare(PGconn *db)
{
    bare_prepare(db, "lock", BARE_CHECKPOINT_READ);
    bare_prepare(db, "page",
                 "SELECT id, saga_id, payload_json FROM saga_deadlines"
                 " WHERE saga_type = '" SAGA_TYPE "' AND next_retry_at <="
                 " statement_timestamp() ORDER BY next_retry_at, id LIMIT 500");
    bare_prepare(db, "read",
                 "SELECT u.n, t.id, t.version, t.state_json"
                 " FROM unnest($1::text[]) WITH ORDINALITY AS u(k, n)"
                 " CROSS JOIN LATERAL (SELECT * FROM saga_instances AS s"
                 " WHERE s.saga_type = '" SAGA_TYPE "' AND s.saga_id = u.k"
                 " OFFSET 0) AS t");
    bare_prepare(db, "drop",
                 "DELETE FROM saga_deadlines AS d USING unnest($1::uuid[])"
                 " AS u(k) WHERE d.id = u.k");
    bare_prepare(db, "update",
                 "UPDATE saga_instances AS t SET state_json = u.s,"
                 " version = u.v + 1 FROM unnest($1::uuid[], $2::text[],"
                 " $3::bigint[]) AS u(k, s, v)"
                 " WHERE t.id = u.k AND t.version = u.v");
}

static int read_due(PGconn *db)
{
    struct bare_params lock = {.count = 0}, none = {.count = 0};
    PGresult *result;
    int got;

    bare_do(db, "BEGIN");
    bare_text_param(&lock, SAGA_TYPE);
    PQclear(bare_run(db, "lock", &lock));
    result = bare_run(db, "page", &none);
    got = PQntuples(result);
    for (int i = 0; i < got; i++) {
        memcpy(dues[i].id, PQgetvalue(result, i, 0), 16);
        due_take(&dues[i], bare_column(result, i, 1), PQgetvalue(result, i, 2));
    }
    PQclear(result);
    return got;
}

static void read_sagas(PGconn *db, int got)
{
    static struct bare_array keys;
    struct bare_params params = {.count = 0};
    PGresult *result;

    bare_array_start(&keys, OID_TEXT);
    for (int i = 0; i < got; i++)
        bare_array_add(&keys, due_saga(&dues[i]));
    bare_array_param(&params, &keys);
    result = bare_run(db, "read", &params);
    for (int i = 0; i < PQntuples(result); i++) {
        struct due *due = &dues[bare_int(result, i, 0) - 1];

        memcpy(due->row, PQgetvalue(result, i, 1), 16);
        due_row(due, bare_int(result, i, 2), PQgetvalue(result, i, 3));
    }
    PQclear(result);
}

static void write_all(PGconn *db, int got)
{
    static struct bare_array ids, rows, states, versions;
    struct bare_params drop = {.count = 0}, update = {.count = 0};
    char state[64];

    bare_array_start(&ids, OID_UUID);
    bare_array_start(&rows, OID_UUID);
    bare_array_start(&states, OID_TEXT);
    bare_array_start(&versions, OID_INT8);
    for (int i = 0; i < got; i++) {
        int size = due_state(&dues[i], state);

        bare_array_add(&ids, (struct slice){dues[i].id, 16});
        bare_array_add(&rows, (struct slice){dues[i].row, 16});
        bare_array_add(&states, (struct slice){state, size});
        bare_array_int(&versions, dues[i].version);
    }
    bare_array_param(&drop, &ids);
    bare_change(db, "drop", &drop, got);
    bare_array_param(&update, &rows);
    bare_array_param(&update, &states);
    bare_array_param(&update, &versions);
    bare_change(db, "update", &update, got);
}

int main(int argc, char **argv)
{
    PGconn *db;
    int got;

    if (argc != 2)
        bare_die("usage", "postgres_deadlines URL");
    db = bare_open(argv[1]);
    prepare(db);
    do {
        got = read_due(db);
        if (got > 0) {
            read_sagas(db, got);
            write_all(db, got);
        }
        bare_do(db, "COMMIT");
    } while (got > 0);
    PQfinish(db);
    return 0;
}
