/*
 * sqlite_steps DATABASE -- the trip saga: pages of 500, each saga's row and its
 * steps read once per page, and what an answer brings about written back: the
 * row under its version, the steps, the deadline and the command.
 */
#include "bare_sqlite.h"
#include "bare_trips.h"

enum {
    READ,
    STEPS,
    INSERT,
    UPDATE,
    ANSWER,
    SEND,
    STAGE,
    WAIT,
    CLEAR,
    STATEMENTS
};

static const char *const texts[STATEMENTS] = {
    [READ] = "SELECT id, version, completed_at, state_json FROM"
             " SAGA_INSTANCES WHERE saga_type = '" SAGA_TYPE
             "' AND saga_id = ?1",
    [STEPS] = "SELECT step_name, state, id, command_id, message_json FROM"
              " SAGA_STEPS WHERE instance_id = ?1 ORDER BY step_no, round",
    [INSERT] = "INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id,"
               " state_json, version, completed_at) VALUES (?1, '" SAGA_TYPE
               "', ?2, ?3, ?4, ?5)",
    [UPDATE] = "UPDATE SAGA_INSTANCES SET state_json = ?2, version = ?3 + 1,"
               " completed_at = ?4 WHERE id = ?1 AND version = ?3",
    [ANSWER] = "UPDATE SAGA_STEPS SET state = 'SUCCEEDED', message_json ="
               " NULL, deadline_at = NULL, answered_at = ?2, updated_at = ?2"
               " WHERE id = ?1",
    [SEND] = "INSERT INTO SAGA_STEPS (id, instance_id, saga_type, saga_id,"
             " step_no, step_name, round, state, command_id, sends,"
             " compensation_sends, message_json, deadline_at, sent_at,"
             " answered_at, updated_at) VALUES (?1, ?2, '" SAGA_TYPE
             "', ?3, ?4, ?5, 1, ?6, ?7, 1, 0, ?8, ?9, ?9, ?10, ?9)",
    [STAGE] = "INSERT INTO OUTBOX (id, outbox_route, event_id, event_type,"
              " correlation_id, causation_id, occurred_at, payload, status,"
              " created_at, available_at, ordering_key, metadata) VALUES (?1,"
              " 'carrier', ?2, ?3, ?2, ?2, ?4, ?5, 'pending', ?4, ?4, ?6, ?7)",
    [WAIT] = "INSERT INTO SAGA_DEADLINES (saga_type, saga_id, name, id,"
             " instance_id, due_at, next_retry_at, payload_json,"
             " metadata_json, partition_no, status, attempts) VALUES ("
             "'" SAGA_TYPE "', ?1, 'moontide:step', ?2, ?3, ?4, ?4, ?5, ?6,"
             " ?7, 'PENDING', 0) ON CONFLICT (saga_type, saga_id, name) DO"
             " UPDATE SET id = excluded.id, instance_id ="
             " excluded.instance_id, due_at = excluded.due_at, next_retry_at ="
             " excluded.next_retry_at, payload_json = excluded.payload_json,"
             " metadata_json = excluded.metadata_json, partition_no ="
             " excluded.partition_no, status = excluded.status, attempts ="
             " excluded.attempts, failure_reason = NULL",
    [CLEAR] = "DELETE FROM SAGA_DEADLINES WHERE saga_type = '" SAGA_TYPE
              "' AND saga_id = ?1",
};

static sqlite3_stmt *statements[STATEMENTS];

static void bind(int statement, int place, const char *text)
{
    sqlite3_bind_text(statements[statement], place, text, -1, SQLITE_TRANSIENT);
}

static void bind_key(int statement, int place, const struct trip *trip)
{
    bare_bind(statements[statement], place,
              (struct slice){trip->key, trip->key_size});
}

/* The trip of this page, read from its rows at first sight. */
static struct trip *trip_read(struct slice key)
{
    int fresh;
    struct trip *trip = trip_of(key, &fresh);
    sqlite3_stmt *read = statements[READ], *steps = statements[STEPS];

    if (!fresh)
        return trip;
    bind_key(READ, 1, trip);
    while (bare_row(read)) {
        trip->stored = 1;
        memcpy(trip->id, sqlite3_column_text(read, 0), 37);
        trip->version = sqlite3_column_int64(read, 1);
        if (sqlite3_column_type(read, 2) != SQLITE_NULL)
            trip->awaits = trip->awaited = TRIP_STEPS;
        trip->seats = bare_number((const char *)sqlite3_column_text(read, 3),
                                  "\"seats\":");
    }
    if (!trip->stored)
        return trip;
    bind(STEPS, 1, trip->id);
    for (int i = 0; bare_row(steps) && i < TRIP_STEPS; i++) {
        memcpy(trip->rows[i], sqlite3_column_text(steps, 2), 37);
        memcpy(trip->commands[i], sqlite3_column_text(steps, 3), 37);
        if (strcmp((const char *)sqlite3_column_text(steps, 1), "SENT") == 0)
            trip_awaits(trip, (const char *)sqlite3_column_text(steps, 0));
    }
    sqlite3_reset(steps);
    return trip;
}

static void write_instance(struct trip *trip, const char *now)
{
    int statement = trip->stored ? UPDATE : INSERT;
    char state[64];

    trip_state(trip, state);
    bind(statement, 1, trip->id);
    bind(statement, trip->stored ? 2 : 3, state);
    if (trip->stored) {
        sqlite3_bind_int64(statements[UPDATE], 3, trip->version);
        bind(UPDATE, 4, trip_ended(trip) ? now : NULL);
    } else {
        bind_key(INSERT, 2, trip);
        sqlite3_bind_int64(statements[INSERT], 4, bare_now());
        bind(INSERT, 5, trip_ended(trip) ? now : NULL);
    }
    bare_run(statements[statement]);
    if (sqlite3_changes(sqlite3_db_handle(statements[statement])) != 1)
        bare_die(trip->key, "was changed by another program");
}

static void write_step(struct trip *trip, int step, const char *now)
{
    char message[160], metadata[256], id[37];
    int answered = trip_answered(trip, step);

    trip_message(trip, message);
    trip_metadata(trip, step, metadata);
    bare_uuid(trip->rows[step]);
    trip_command(trip->commands[step]);
    bind(SEND, 1, trip->rows[step]);
    bind(SEND, 2, trip->id);
    bind_key(SEND, 3, trip);
    sqlite3_bind_int(statements[SEND], 4, step + 1);
    bind(SEND, 5, trip_steps[step].name);
    bind(SEND, 6, answered ? "SUCCEEDED" : "SENT");
    bind(SEND, 7, trip->commands[step]);
    bind(SEND, 8, answered ? NULL : message);
    bind(SEND, 9, now);
    bind(SEND, 10, answered ? now : NULL);
    bare_run(statements[SEND]);
    bare_uuid(id);
    bind(STAGE, 1, id);
    bind(STAGE, 2, trip->commands[step]);
    bind(STAGE, 3, trip_steps[step].command);
    bind(STAGE, 4, now);
    bind(STAGE, 5, message);
    bind_key(STAGE, 6, trip);
    bind(STAGE, 7, metadata);
    bare_run(statements[STAGE]);
}

static void write_deadline(struct trip *trip, const char *now)
{
    char id[37], payload[64], chain[256];

    if (trip_ended(trip)) {
        bind_key(CLEAR, 1, trip);
        bare_run(statements[CLEAR]);
        return;
    }
    bare_uuid(id);
    trip_deadline(trip, payload);
    trip_chain(trip, chain);
    bind_key(WAIT, 1, trip);
    bind(WAIT, 2, id);
    bind(WAIT, 3, trip->id);
    bind(WAIT, 4, now);
    bind(WAIT, 5, payload);
    bind(WAIT, 6, chain);
    sqlite3_bind_int(statements[WAIT], 7, trip_partition(trip));
    bare_run(statements[WAIT]);
}

static void write_trip(struct trip *trip)
{
    const char *now = bare_time('T', "Z");

    if (!trip_changed(trip))
        return;
    write_instance(trip, now);
    if (trip->awaited >= 0 && trip->awaited < TRIP_STEPS) {
        bind(ANSWER, 1, trip->rows[trip->awaited]);
        bind(ANSWER, 2, now);
        bare_run(statements[ANSWER]);
    }
    for (int i = trip_from(trip); i < trip_to(trip); i++)
        write_step(trip, i, now);
    write_deadline(trip, now);
}

int main(int argc, char **argv)
{
    struct bare_loop loop;
    int got;

    if (argc != 2)
        bare_die("usage", "sqlite_steps DATABASE");
    bare_loop_open(&loop, argv[1], SAGA_TYPE,
                   "aggregate_id, event_type, payload");
    for (int i = 0; i < STATEMENTS; i++)
        statements[i] = bare_prepare(loop.db, texts[i]);
    do {
        int64_t position = bare_loop_begin(&loop);

        got = 0;
        while (bare_row(loop.events)) {
            struct trip *trip = trip_read(bare_column(loop.events, 1));

            got++;
            position = sqlite3_column_int64(loop.events, 0);
            trip_apply(trip, (const char *)sqlite3_column_text(loop.events, 2),
                       (const char *)sqlite3_column_text(loop.events, 3));
        }
        for (int i = 0; i < trips.count; i++)
            write_trip(trips.order[i]);
        trips_clear();
        bare_loop_commit(&loop, got, position);
    } while (got > 0);
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(statements[i]);
    bare_loop_close(&loop);
    return 0;
}
