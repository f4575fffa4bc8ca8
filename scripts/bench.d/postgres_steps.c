/*
 * postgres_steps URL -- the trip saga: pages of 500, the sagas' rows and their
 * steps read together once per page, and what the answers bring about written
 * back: the rows under their version, the steps, the deadlines, the commands.
 */
#include "bare_postgres.h"
#include "bare_trips.h"

#define ENDED   "CASE WHEN u.ended > 0 THEN now() END"
#define TYPE_OF "'" SAGA_TYPE "'"

static void prepare_reads(PGconn *db)
{
    bare_prepare_page(db);
    bare_prepare(db, "read",
                 "SELECT u.n, t.id::text, t.version, t.completed_at IS NOT"
                 " NULL, t.state_json FROM unnest($1::text[]) WITH ORDINALITY"
                 " AS u(k, n) CROSS JOIN LATERAL (SELECT * FROM"
                 " saga_instances AS s WHERE s.saga_type = " TYPE_OF
                 " AND s.saga_id = u.k OFFSET 0) AS t");
    bare_prepare(db, "steps",
                 "SELECT u.n, t.step_no, t.step_name, t.state, t.id::text,"
                 " t.command_id::text, t.message_json FROM unnest($1::uuid[])"
                 " WITH ORDINALITY AS u(k, n) CROSS JOIN LATERAL (SELECT *"
                 " FROM saga_steps AS s WHERE s.instance_id = u.k OFFSET 0)"
                 " AS t ORDER BY u.n, t.step_no, t.round");
}

static void prepare_writes(PGconn *db)
{
    bare_prepare(db, "update",
                 "UPDATE saga_instances AS t SET state_json = u.s,"
                 " version = u.v + 1, completed_at = " ENDED
                 " FROM unnest($1::uuid[], $2::text[], $3::bigint[],"
                 " $4::bigint[]) AS u(k, s, v, ended)"
                 " WHERE t.id = u.k AND t.version = u.v");
    bare_prepare(db, "insert",
                 "INSERT INTO saga_instances (id, saga_type, saga_id,"
                 " state_json, version, completed_at) SELECT u.k, " TYPE_OF
                 ", u.i, u.s, u.v, " ENDED " FROM unnest($1::uuid[],"
                 " $2::text[], $3::bigint[], $4::bigint[], $5::text[])"
                 " AS u(k, s, v, ended, i)");
    bare_prepare(db, "answer",
                 "UPDATE saga_steps AS t SET state = 'SUCCEEDED',"
                 " message_json = NULL, deadline_at = NULL,"
                 " answered_at = now(), updated_at = now()"
                 " FROM unnest($1::uuid[]) AS u(k) WHERE t.id = u.k");
    bare_prepare(db, "send",
                 "INSERT INTO saga_steps (id, instance_id, saga_type, saga_id,"
                 " step_no, step_name, state, command_id, message_json,"
                 " deadline_at, sent_at, answered_at, updated_at) SELECT u.k,"
                 " u.i, " TYPE_OF ", u.s, u.no, u.n, u.st, u.c,"
                 " NULLIF(u.m, ''), now(), now(), CASE WHEN u.m = '' THEN"
                 " now() END, now() FROM unnest($1::uuid[], $2::uuid[],"
                 " $3::text[], $4::bigint[], $5::text[], $6::text[],"
                 " $7::uuid[], $8::text[]) AS u(k, i, s, no, n, st, c, m)");
    bare_prepare(db, "stage",
                 "INSERT INTO outbox (id, outbox_route, event_id, event_type,"
                 " correlation_id, causation_id, occurred_at, payload, status,"
                 " created_at, available_at, ordering_key, metadata) SELECT"
                 " u.k, 'carrier', u.c, u.t, u.c, u.c, now(), u.p::json,"
                 " 'pending', now(), now(), u.o, u.m::json FROM"
                 " unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[],"
                 " $5::text[], $6::text[]) AS u(k, c, t, p, o, m)");
    bare_prepare(db, "wait",
                 "INSERT INTO saga_deadlines (saga_type, saga_id, name, id,"
                 " instance_id, due_at, next_retry_at, payload_json,"
                 " metadata_json, partition_no, status, attempts) SELECT"
                 " " TYPE_OF ", u.s, 'moontide:step', u.k, u.i, now() +"
                 " '1 hour', now() + '1 hour', u.p, u.m, u.part, 'PENDING', 0"
                 " FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[],"
                 " $5::text[], $6::bigint[]) AS u(k, i, s, p, m, part)"
                 " ON CONFLICT (saga_type, saga_id, name) DO UPDATE SET"
                 " id = excluded.id, instance_id = excluded.instance_id,"
                 " due_at = excluded.due_at, next_retry_at ="
                 " excluded.next_retry_at, payload_json ="
                 " excluded.payload_json, metadata_json ="
                 " excluded.metadata_json, partition_no ="
                 " excluded.partition_no, status = excluded.status, attempts ="
                 " excluded.attempts, failure_reason = NULL");
    bare_prepare(db, "clear",
                 "DELETE FROM saga_deadlines AS d WHERE d.id = ANY (ARRAY("
                 "SELECT f.id FROM unnest($1::text[]) AS u(k) CROSS JOIN"
                 " LATERAL (SELECT i.id FROM saga_deadlines AS i WHERE"
                 " i.saga_type = " TYPE_OF " AND i.saga_id = u.k OFFSET 0)"
                 " AS f))");
}

/* --- arrays of a statement ------------------------------------------------ */

#define COLUMNS 8

struct rows {
    const char *name;
    struct bare_array arrays[COLUMNS];
    int columns;
};

static void rows_start(struct rows *rows, const char *name,
                       const uint32_t *oids, int columns)
{
    rows->name = name;
    rows->columns = columns;
    for (int i = 0; i < columns; i++)
        bare_array_start(&rows->arrays[i], oids[i]);
}

static void put(struct rows *rows, int column, const char *text)
{
    bare_array_add(&rows->arrays[column],
                   (struct slice){text, (int)strlen(text)});
}

static void put_id(struct rows *rows, int column, const char *id)
{
    char bytes[16];

    bare_uuid_bytes(id, bytes);
    bare_array_add(&rows->arrays[column], (struct slice){bytes, 16});
}

static void put_key(struct rows *rows, int column, const struct trip *trip)
{
    bare_array_add(&rows->arrays[column],
                   (struct slice){trip->key, trip->key_size});
}

static PGresult *rows_read(PGconn *db, struct rows *rows)
{
    struct bare_params params = {.count = 0};

    for (int i = 0; i < rows->columns; i++)
        bare_array_param(&params, &rows->arrays[i]);
    return bare_run(db, rows->name, &params);
}

static void rows_write(PGconn *db, struct rows *rows)
{
    struct bare_params params = {.count = 0};

    if (rows->arrays[0].count == 0)
        return;
    for (int i = 0; i < rows->columns; i++)
        bare_array_param(&params, &rows->arrays[i]);
    bare_change(db, rows->name, &params, (int)rows->arrays[0].count);
}

/* --- a page --------------------------------------------------------------- */

static const uint32_t text_oid[] = {OID_TEXT}, uuid_oid[] = {OID_UUID};

static void read_steps(PGconn *db, struct trip **stored, struct rows *ids)
{
    PGresult *result = rows_read(db, ids);

    for (int i = 0; i < PQntuples(result); i++) {
        struct trip *trip = stored[bare_int(result, i, 0) - 1];
        uint32_t number;
        char *name = PQgetvalue(result, i, 2);

        memcpy(&number, PQgetvalue(result, i, 1), sizeof(number));
        number = be32toh(number) - 1;
        memcpy(trip->rows[number], PQgetvalue(result, i, 4), 36);
        memcpy(trip->commands[number], PQgetvalue(result, i, 5), 36);
        if (strcmp(PQgetvalue(result, i, 3), "SENT") == 0)
            trip_awaits(trip, name);
    }
    PQclear(result);
}

static void read_trips(PGconn *db)
{
    static struct rows keys, ids;
    struct trip *stored[BARE_BATCH];
    PGresult *result;

    rows_start(&keys, "read", text_oid, 1);
    rows_start(&ids, "steps", uuid_oid, 1);
    for (int i = 0; i < trips.count; i++)
        put_key(&keys, 0, trips.order[i]);
    result = rows_read(db, &keys);
    for (int i = 0; i < PQntuples(result); i++) {
        struct trip *trip = trips.order[bare_int(result, i, 0) - 1];

        trip->stored = 1;
        memcpy(trip->id, PQgetvalue(result, i, 1), 36);
        trip->version = bare_int(result, i, 2);
        if (*PQgetvalue(result, i, 3) != 0)
            trip->awaits = trip->awaited = TRIP_STEPS;
        trip->seats = bare_number(PQgetvalue(result, i, 4), "\"seats\":");
        stored[i] = trip;
        put_id(&ids, 0, trip->id);
    }
    if (PQntuples(result) > 0)
        read_steps(db, stored, &ids);
    PQclear(result);
}

static struct rows update, insert, answer, sent, stage, await, clear;

static void start_writes(void)
{
    static const uint32_t instance[] = {OID_UUID, OID_TEXT, OID_INT8, OID_INT8,
                                        OID_TEXT};
    static const uint32_t step[] = {OID_UUID, OID_UUID, OID_TEXT, OID_INT8,
                                    OID_TEXT, OID_TEXT, OID_UUID, OID_TEXT};
    static const uint32_t message[] = {OID_UUID, OID_UUID, OID_TEXT,
                                       OID_TEXT, OID_TEXT, OID_TEXT};
    static const uint32_t deadline[] = {OID_UUID, OID_UUID, OID_TEXT,
                                        OID_TEXT, OID_TEXT, OID_INT8};

    rows_start(&update, "update", instance, 4);
    rows_start(&insert, "insert", instance, 5);
    rows_start(&answer, "answer", uuid_oid, 1);
    rows_start(&sent, "send", step, 8);
    rows_start(&stage, "stage", message, 6);
    rows_start(&await, "wait", deadline, 6);
    rows_start(&clear, "clear", text_oid, 1);
}

static void add_instance(struct trip *trip)
{
    struct rows *rows = trip->stored ? &update : &insert;
    char state[64];

    trip_state(trip, state);
    put_id(rows, 0, trip->id);
    put(rows, 1, state);
    bare_array_int(&rows->arrays[2], trip->stored ? trip->version : bare_now());
    bare_array_int(&rows->arrays[3], trip_ended(trip));
    if (!trip->stored)
        put_key(rows, 4, trip);
}

static void add_step(struct trip *trip, int step)
{
    int answered = trip_answered(trip, step);
    char message[160], metadata[256], id[37];

    trip_message(trip, message);
    trip_metadata(trip, step, metadata);
    bare_uuid(trip->rows[step]);
    trip_command(trip->commands[step]);
    bare_uuid(id);
    put_id(&sent, 0, trip->rows[step]);
    put_id(&sent, 1, trip->id);
    put_key(&sent, 2, trip);
    bare_array_int(&sent.arrays[3], step + 1);
    put(&sent, 4, trip_steps[step].name);
    put(&sent, 5, answered ? "SUCCEEDED" : "SENT");
    put_id(&sent, 6, trip->commands[step]);
    put(&sent, 7, answered ? "" : message);
    put_id(&stage, 0, id);
    put_id(&stage, 1, trip->commands[step]);
    put(&stage, 2, trip_steps[step].command);
    put(&stage, 3, message);
    put_key(&stage, 4, trip);
    put(&stage, 5, metadata);
}

static void add_deadline(struct trip *trip)
{
    char id[37], payload[64], chain[256];

    if (trip_ended(trip)) {
        put_key(&clear, 0, trip);
        return;
    }
    bare_uuid(id);
    trip_deadline(trip, payload);
    trip_chain(trip, chain);
    put_id(&await, 0, id);
    put_id(&await, 1, trip->id);
    put_key(&await, 2, trip);
    put(&await, 3, payload);
    put(&await, 4, chain);
    bare_array_int(&await.arrays[5], trip_partition(trip));
}

static void write_trips(PGconn *db)
{
    start_writes();
    for (int i = 0; i < trips.count; i++) {
        struct trip *trip = trips.order[i];

        if (!trip_changed(trip))
            continue;
        add_instance(trip);
        if (trip->awaited >= 0 && trip->awaited < TRIP_STEPS)
            put_id(&answer, 0, trip->rows[trip->awaited]);
        for (int s = trip_from(trip); s < trip_to(trip); s++)
            add_step(trip, s);
        add_deadline(trip);
    }
    rows_write(db, &update);
    rows_write(db, &insert);
    rows_write(db, &answer);
    rows_write(db, &sent);
    rows_write(db, &clear);
    rows_write(db, &await);
    rows_write(db, &stage);
}

int main(int argc, char **argv)
{
    PGconn *db;
    int got;

    if (argc != 2)
        bare_die("usage", "postgres_steps URL");
    db = bare_open(argv[1]);
    prepare_reads(db);
    prepare_writes(db);
    do {
        PGresult *events = bare_page(db, SAGA_TYPE);
        int fresh;

        got = PQntuples(events);
        for (int i = 0; i < got; i++)
            (void)trip_of(bare_column(events, i, 1), &fresh);
        if (got > 0)
            read_trips(db);
        for (int i = 0; i < got; i++)
            trip_apply(trip_of(bare_column(events, i, 1), &fresh),
                       PQgetvalue(events, i, 2), PQgetvalue(events, i, 4));
        write_trips(db);
        trips_clear();
        if (got > 0)
            bare_commit(db, SAGA_TYPE, bare_int(events, got - 1, 0));
        else
            bare_do(db, "ROLLBACK");
        PQclear(events);
    } while (got > 0);
    PQfinish(db);
    return 0;
}
