/*
 * postgres_append URL FILE -- appends the bank's NDJSON file: finds the fields
 * by their marks, looks for ids that are there already, reads where the streams
 * of the batch end, as other writers may have gone on, 500 events a
 * transaction.
 */
#include "bare_lines.h"
#include "bare_postgres.h"

enum {
    ID,
    KEY,
    TYPE,
    SEQUENCE,
    KIND,
    PAYLOAD,
    METADATA,
    AT,
    PARTITION,
    POSITION,
    ARRAYS
};

static const uint32_t oids[ARRAYS] = {OID_UUID, OID_TEXT, OID_TEXT, OID_INT8,
                                      OID_TEXT, OID_TEXT, OID_TEXT, OID_TEXT,
                                      OID_INT8, OID_INT8};

static void prepare(PGconn *db)
{
    bare_prepare(db, "ids",
                 "SELECT e.id FROM unnest($1::uuid[]) AS u(id)"
                 " JOIN event_store AS e ON e.id = u.id");
    bare_prepare(db, "ends",
                 "SELECT u.n, (SELECT max(e.sequence_no) FROM event_store AS e"
                 " WHERE e.aggregate_type = $2::text AND e.aggregate_id = u.k)"
                 " FROM unnest($1::text[]) WITH ORDINALITY AS u(k, n)");
    bare_prepare(db, "positions",
                 "SELECT nextval('event_store_global_position')"
                 " FROM generate_series(1, $1::bigint)"
                 " WHERE pg_current_xact_id() IS NOT NULL");
    bare_prepare(db, "insert",
                 "INSERT INTO event_store (id, aggregate_id, aggregate_type,"
                 " sequence_no, event_type, payload, metadata, occurred_at,"
                 " partition_key, global_position) SELECT u.id, u.k, u.t, u.n,"
                 " u.e, u.p::json, u.m::json, u.a::timestamptz, u.r::smallint,"
                 " u.g FROM unnest($1::uuid[], $2::text[], $3::text[],"
                 " $4::bigint[], $5::text[], $6::text[], $7::text[],"
                 " $8::text[], $9::bigint[], $10::bigint[])"
                 " AS u(id, k, t, n, e, p, m, a, r, g)");
}

static void check_ids(PGconn *db, struct bare_array *ids)
{
    struct bare_params params = {.count = 0};
    PGresult *result;

    bare_array_param(&params, ids);
    result = bare_run(db, "ids", &params);
    if (PQntuples(result) > 0)
        bare_die("id", "an event is there already");
    PQclear(result);
}

/* Where the streams of the batch end. */
static void read_ends(PGconn *db, struct streams *streams,
                      const struct line *lines, int count)
{
    static struct bare_array keys;
    static int batch;
    const struct line *unread[BARE_BATCH];
    struct bare_params params = {.count = 0};
    PGresult *result;
    int n = 0, fresh;

    bare_array_start(&keys, OID_TEXT);
    batch++;
    for (int i = 0; i < count; i++) {
        struct stream *stream = streams_get(streams, lines[i].key,
                                            lines[i].hash, &fresh);

        if (stream->batch == batch)
            continue;
        stream->batch = batch;
        bare_array_add(&keys, lines[i].key);
        unread[n++] = &lines[i];
    }
    if (n == 0)
        return;
    bare_array_param(&params, &keys);
    params.values[1] = lines[0].type.data;
    params.sizes[1] = lines[0].type.size;
    params.count = 2;
    result = bare_run(db, "ends", &params);
    for (int i = 0; i < PQntuples(result); i++) {
        const struct line *line = unread[bare_int(result, i, 0) - 1];

        if (!PQgetisnull(result, i, 1))
            streams_get(streams, line->key, line->hash, &fresh)
                ->last = bare_int(result, i, 1);
    }
    PQclear(result);
}

static void write_batch(PGconn *db, struct streams *streams,
                        const struct line *lines, int count)
{
    static struct bare_array arrays[ARRAYS];
    struct bare_params draw = {.count = 0}, params = {.count = 0};
    PGresult *positions;
    char id[16];
    int fresh;

    for (int i = 0; i < ARRAYS; i++)
        bare_array_start(&arrays[i], oids[i]);
    for (int i = 0; i < count; i++) {
        bare_uuid_bytes(lines[i].id.data, id);
        bare_array_add(&arrays[ID], (struct slice){id, sizeof(id)});
    }
    bare_do(db, "BEGIN");
    check_ids(db, &arrays[ID]);
    read_ends(db, streams, lines, count);
    bare_int_param(&draw, count);
    positions = bare_run(db, "positions", &draw);
    for (int i = 0; i < count; i++) {
        const struct line *line = &lines[i];

        bare_array_add(&arrays[KEY], line->key);
        bare_array_add(&arrays[TYPE], line->type);
        bare_array_int(
            &arrays[SEQUENCE],
            ++streams_get(streams, line->key, line->hash, &fresh)->last);
        bare_array_add(&arrays[KIND], line->kind);
        bare_array_add(&arrays[PAYLOAD], line->payload);
        bare_array_add(&arrays[METADATA], line->metadata);
        bare_array_add(&arrays[AT], line->at);
        bare_array_int(&arrays[PARTITION],
                       (int64_t)(line->hash % BARE_PARTITIONS));
        bare_array_int(&arrays[POSITION], bare_int(positions, i, 0));
    }
    PQclear(positions);
    for (int i = 0; i < ARRAYS; i++)
        bare_array_param(&params, &arrays[i]);
    bare_change(db, "insert", &params, count);
    bare_do(db, "COMMIT");
}

int main(int argc, char **argv)
{
    static struct line lines[BARE_BATCH];
    struct streams streams = {NULL, 0, 0};
    const char *at, *end;
    struct slice text;
    PGconn *db;

    if (argc != 3)
        bare_die("usage", "postgres_append URL FILE");
    text = map_file(argv[2]);
    db = bare_open(argv[1]);
    prepare(db);
    at = text.data;
    end = text.data + text.size;
    while (at < end) {
        int count = 0;

        while (at < end && count < BARE_BATCH) {
            const char *next = next_line(at, end);

            lines[count++] = line_parse(at, (int)(next - at));
            at = next;
        }
        write_batch(db, &streams, lines, count);
    }
    PQfinish(db);
    free(streams.slots);
    return 0;
}
