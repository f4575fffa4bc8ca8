/*
 * mysql_steps URL -- the trip saga: pages of 500, the sagas' rows and their
 * steps read together once per page, and what the answers bring about written
 * back: the rows under their version, the steps, the deadlines, the commands.
 */
#include "bare_mysql.h"
#include "bare_trips.h"

/* What changes rows that are there runs once for each of them. */
static struct bare_bulk update, close_, answer;
static char states[BARE_BATCH][64], closed_at[48];

static void prepare(MYSQL *db)
{
    bare_prepare(db, &update,
                 "UPDATE SAGA_INSTANCES SET state_json = ?, version = ?"
                 " WHERE id = ? AND version = ?");
    bare_prepare(db, &close_,
                 "UPDATE SAGA_INSTANCES SET state_json = ?, version = ?,"
                 " completed_at = ? WHERE id = ? AND version = ?");
    bare_prepare(db, &answer,
                 "UPDATE SAGA_STEPS SET state = 'SUCCEEDED', message_json ="
                 " NULL, deadline_at = NULL, answered_at = ?, updated_at = ?"
                 " WHERE id = ?");
}

/* --- texts of many rows --------------------------------------------------- */

static struct bare_text insert, sent, stage, await, clear;

/* Begins a row behind the statement's beginning, or behind another row. */
static struct bare_text *row_of(struct bare_text *text, const char *beginning)
{
    bare_puts(text, text->rows++ == 0 ? beginning : "), (");
    return text;
}

static void put(struct bare_text *text, const char *value)
{
    bare_quote(text, (struct slice){value, (int)strlen(value)});
}

static void put_key(struct bare_text *text, const struct trip *trip)
{
    bare_quote(text, (struct slice){trip->key, trip->key_size});
}

static void next(struct bare_text *text)
{
    bare_puts(text, ",");
}

static void write_text(MYSQL *db, struct bare_text *text, const char *end)
{
    if (text->rows > 0) {
        bare_puts(text, end);
        bare_run(db, text);
    }
    text->rows = 0;
    text->size = 0;
}

/* --- reading -------------------------------------------------------------- */

static void read_steps(MYSQL *db, const struct bare_text *ids)
{
    static struct bare_text sql;
    MYSQL_RES *result;
    MYSQL_ROW row;
    int fresh;

    sql.size = 0;
    bare_puts(&sql, "SELECT saga_id, step_no, step_name, state, id, command_id,"
                    " message_json FROM SAGA_STEPS WHERE instance_id IN (");
    bare_put(&sql, (struct slice){ids->bytes, (int)ids->size});
    bare_puts(&sql, ") ORDER BY instance_id, step_no, round");
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        struct trip *trip = trip_of((struct slice){row[0], (int)strlen(row[0])},
                                    &fresh);
        int number = atoi(row[1]) - 1;

        memcpy(trip->rows[number], row[4], 37);
        memcpy(trip->commands[number], row[5], 37);
        if (strcmp(row[3], "SENT") == 0)
            trip_awaits(trip, row[2]);
    }
    mysql_free_result(result);
}

static void read_trips(MYSQL *db)
{
    static struct bare_text sql, ids;
    MYSQL_RES *result;
    MYSQL_ROW row;
    int fresh;

    sql.size = ids.size = 0;
    bare_puts(&sql, "SELECT saga_id, id, version, completed_at, state_json FROM"
                    " SAGA_INSTANCES WHERE saga_type = '" SAGA_TYPE
                    "' AND saga_id IN (");
    for (int i = 0; i < trips.count; i++) {
        if (i > 0)
            next(&sql);
        put_key(&sql, trips.order[i]);
    }
    bare_puts(&sql, ")");
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        struct trip *trip = trip_of((struct slice){row[0], (int)strlen(row[0])},
                                    &fresh);

        trip->stored = 1;
        memcpy(trip->id, row[1], 37);
        trip->version = strtoll(row[2], NULL, 10);
        if (row[3] != NULL)
            trip->awaits = trip->awaited = TRIP_STEPS;
        trip->seats = bare_number(row[4], "\"seats\":");
        if (ids.size > 0)
            next(&ids);
        put(&ids, trip->id);
    }
    mysql_free_result(result);
    if (ids.size > 0)
        read_steps(db, &ids);
}

/* --- writing -------------------------------------------------------------- */

static void add_instance(struct trip *trip, int at)
{
    struct bare_bulk *bulk = trip_ended(trip) ? &close_ : &update;
    int size = trip_state(trip, states[at]), column = 0;
    struct bare_text *text;

    if (trip->stored) {
        bare_bulk_text(bulk, column++, states[at], (size_t)size);
        bare_bulk_int(bulk, column++, trip->version + 1);
        if (trip_ended(trip))
            bare_bulk_text(bulk, column++, closed_at, strlen(closed_at));
        bare_bulk_text(bulk, column++, trip->id, 36);
        bare_bulk_int(bulk, column, trip->version);
        bulk->rows++;
        return;
    }
    text = row_of(&insert, "INSERT INTO SAGA_INSTANCES (id, saga_type, saga_id,"
                           " state_json, version, completed_at) VALUES (");
    put(text, trip->id);
    bare_puts(text, ",'" SAGA_TYPE "',");
    put_key(text, trip);
    next(text);
    put(text, states[at]);
    next(text);
    bare_put_int(text, bare_now());
    bare_puts(text, trip_ended(trip) ? ",NOW(6)" : ",NULL");
}

static void add_sent(struct trip *trip, int step, const char *message)
{
    int answered = trip_answered(trip, step);
    struct bare_text *text = row_of(
        &sent, "INSERT INTO SAGA_STEPS (saga_type, id, instance_id, saga_id,"
               " step_no, step_name, state, command_id, message_json,"
               " deadline_at, sent_at, answered_at, updated_at) VALUES (");

    bare_puts(text, "'" SAGA_TYPE "',");
    put(text, trip->rows[step]);
    next(text);
    put(text, trip->id);
    next(text);
    put_key(text, trip);
    next(text);
    bare_put_int(text, step + 1);
    next(text);
    put(text, trip_steps[step].name);
    bare_puts(text, answered ? ",'SUCCEEDED'," : ",'SENT',");
    put(text, trip->commands[step]);
    next(text);
    if (answered)
        bare_puts(text, "NULL,NULL,NOW(6),NOW(6),NOW(6)");
    else {
        put(text, message);
        bare_puts(text, ",NOW(6),NOW(6),NULL,NOW(6)");
    }
}

static void add_step(struct trip *trip, int step)
{
    char message[160], metadata[256], id[37];
    struct bare_text *text;

    trip_message(trip, message);
    trip_metadata(trip, step, metadata);
    bare_uuid(trip->rows[step]);
    trip_command(trip->commands[step]);
    bare_uuid(id);
    add_sent(trip, step, message);
    text = row_of(&stage,
                  "INSERT INTO OUTBOX (outbox_route, status, occurred_at,"
                  " created_at, available_at, id, event_id, event_type,"
                  " correlation_id, causation_id, payload, ordering_key,"
                  " metadata) VALUES (");
    bare_puts(text, "'carrier','pending',NOW(6),NOW(6),NOW(6),");
    put(text, id);
    next(text);
    put(text, trip->commands[step]);
    next(text);
    put(text, trip_steps[step].command);
    next(text);
    put(text, trip->commands[step]);
    next(text);
    put(text, trip->commands[step]);
    next(text);
    put(text, message);
    next(text);
    put_key(text, trip);
    next(text);
    put(text, metadata);
}

static void add_deadline(struct trip *trip)
{
    char id[37], payload[64], chain[256];
    struct bare_text *text;

    if (trip_ended(trip)) {
        if (clear.rows++ == 0)
            bare_puts(&clear, "DELETE FROM SAGA_DEADLINES WHERE saga_type ="
                              " '" SAGA_TYPE "' AND saga_id IN (");
        else
            next(&clear);
        put_key(&clear, trip);
        return;
    }
    bare_uuid(id);
    trip_deadline(trip, payload);
    trip_chain(trip, chain);
    text = row_of(
        &await, "INSERT INTO SAGA_DEADLINES (saga_type, name, status, attempts,"
                " due_at, next_retry_at, saga_id, id, instance_id,"
                " payload_json, metadata_json, partition_no) VALUES (");
    bare_puts(text, "'" SAGA_TYPE "','moontide:step','PENDING',0,"
                    "NOW(6) + INTERVAL 1 HOUR,NOW(6) + INTERVAL 1 HOUR,");
    put_key(text, trip);
    next(text);
    put(text, id);
    next(text);
    put(text, trip->id);
    next(text);
    put(text, payload);
    next(text);
    put(text, chain);
    next(text);
    bare_put_int(text, trip_partition(trip));
}

static void write_trips(MYSQL *db)
{
    snprintf(closed_at, sizeof(closed_at), "%s", bare_time(' ', ""));
    for (int i = 0; i < trips.count; i++) {
        struct trip *trip = trips.order[i];

        if (!trip_changed(trip))
            continue;
        add_instance(trip, i);
        if (trip->awaited >= 0 && trip->awaited < TRIP_STEPS) {
            bare_bulk_text(&answer, 0, closed_at, strlen(closed_at));
            bare_bulk_text(&answer, 1, closed_at, strlen(closed_at));
            bare_bulk_text(&answer, 2, trip->rows[trip->awaited], 36);
            answer.rows++;
        }
        for (int s = trip_from(trip); s < trip_to(trip); s++)
            add_step(trip, s);
        add_deadline(trip);
    }
    bare_bulk_run(db, &update);
    bare_bulk_run(db, &close_);
    write_text(db, &insert, ")");
    bare_bulk_run(db, &answer);
    write_text(db, &sent, ")");
    write_text(db, &clear, ")");
    write_text(db, &await,
               ") ON DUPLICATE KEY UPDATE id = VALUES(id), instance_id ="
               " VALUES(instance_id), due_at = VALUES(due_at), next_retry_at ="
               " VALUES(next_retry_at), payload_json = VALUES(payload_json),"
               " metadata_json = VALUES(metadata_json), partition_no ="
               " VALUES(partition_no), status = VALUES(status), attempts ="
               " VALUES(attempts), failure_reason = NULL");
    write_text(db, &stage, ")");
}

/* One page; how many events it had. */
static int run_page(MYSQL *db)
{
    MYSQL_RES *events = bare_page(db, SAGA_TYPE);
    int64_t position = 0;
    MYSQL_ROW row;
    int got = 0, fresh;

    while ((row = mysql_fetch_row(events)) != NULL) {
        (void)trip_of((struct slice){row[1], (int)strlen(row[1])}, &fresh);
        position = strtoll(row[0], NULL, 10);
        got++;
    }
    if (got > 0)
        read_trips(db);
    mysql_data_seek(events, 0);
    while ((row = mysql_fetch_row(events)) != NULL)
        trip_apply(trip_of((struct slice){row[1], (int)strlen(row[1])}, &fresh),
                   row[2], row[4]);
    mysql_free_result(events);
    write_trips(db);
    trips_clear();
    if (got > 0)
        bare_commit(db, SAGA_TYPE, position);
    else
        bare_do(db, "ROLLBACK");
    return got;
}

int main(int argc, char **argv)
{
    MYSQL *db;

    if (argc != 2)
        bare_die("usage", "mysql_steps URL");
    db = bare_open(argv[1]);
    bare_mark(db);
    prepare(db);
    while (run_page(db) > 0)
        continue;
    mysql_stmt_close(update.statement);
    mysql_stmt_close(close_.statement);
    mysql_stmt_close(answer.statement);
    mysql_close(db);
    return 0;
}
