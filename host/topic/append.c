#include "topic/append_call.h"
#include "topic/high_water_mark.h"
#include "topic/message.h"

#include <assert.h>

static enum status check_all(struct append_call *call, struct diag *diag)
{
    for (size_t i = 0; i < call->count; i++) {
        enum status status = append_check(&call->events[i],
                                          call->options->payload_limit, diag);

        if (status != STATUS_OK) {
            *call->bad = i;
            return status;
        }
    }
    return STATUS_OK;
}

static void start_items(struct append_call *call)
{
    call->items = arena_alloc(&call->store->scratch,
                              call->count * sizeof(*call->items));
    for (size_t i = 0; i < call->count; i++) {
        call->items[i] = (struct append_item){.same_as = APPEND_NOWHERE};
        call->results[i] = (struct append_result){.id = call->events[i].id};
    }
}

static void give_ids(struct append_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (!append_is_new(&call->items[i]))
            continue;
        call->nnew++;
        if (!call->events[i].has_id)
            call->results[i].id = uuid_v7(call->options->ids,
                                          call->options->now_us);
    }
}

/* Hands the runs of positions to the new events in the order of the call. */
static enum status hand_out(struct append_call *call, struct db_rows *rows,
                            struct diag *diag)
{
    int64_t position = 0;
    int64_t left = 0;

    for (size_t i = 0; i < call->count; i++) {
        if (!append_is_new(&call->items[i]))
            continue;
        if (left == 0) {
            bool more;
            enum status status = db_next(rows, &more, diag);

            if (status != STATUS_OK)
                return status;
            if (!more)
                return diag_set(diag, STATUS_PERMANENT,
                                "the position counter of the event store has "
                                "no row; run `moontide schema upgrade`");
            position = db_get_int64(rows, 0);
            left = db_get_int64(rows, 1);
        }
        call->results[i].position = position++;
        left--;
    }
    return STATUS_OK;
}

/* In an older copy of the database the counter would hand out positions below
 * the mark, which consumers have passed: these events would never be applied,
 * and once the counter is above the mark nothing would show it. */
static enum status check_mark(struct append_call *call, struct diag *diag)
{
    struct high_water_mark mark;
    enum status status;

    if (call->store->mark_checked)
        return STATUS_OK;
    status = high_water_mark_read(call->db, call->store->catalog,
                                  TOPIC_EVENT_STORE, &mark, diag);
    if (status == STATUS_OK)
        status = high_water_mark_check(TOPIC_EVENT_STORE, &mark, diag);
    call->store->mark_checked = status == STATUS_OK;
    return status;
}

static enum status draw_positions(struct append_call *call, struct diag *diag)
{
    const struct db_sql *sql = catalog_sql(call->store->catalog,
                                           SQL_APPEND_POSITIONS);
    struct db_value params[] = {db_integer((int64_t)call->nnew)};
    struct db_rows *rows;
    enum status status;

    status = db_query(call->db, sql, params, 1, &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = hand_out(call, rows, diag);
    db_rows_close(rows);
    return status;
}

static void fill_row(const struct append_call *call, size_t index,
                     struct db_value *row)
{
    const struct append_event *event = &call->events[index];
    const struct append_result *result = &call->results[index];
    const struct append_stream
        *stream = &call->streams[call->items[index].stream];

    row[EVENT_ID] = db_uuid(result->id);
    row[EVENT_AGGREGATE_TYPE] = db_text_value(event->aggregate_type);
    row[EVENT_AGGREGATE_ID] = db_text_value(event->aggregate_id);
    row[EVENT_SEQUENCE] = db_integer(result->sequence);
    row[EVENT_TYPE] = db_text_value(event->type);
    row[EVENT_REVISION] = db_integer(event->revision);
    row[EVENT_PAYLOAD] = db_text_value(event->payload);
    row[EVENT_METADATA] = db_text_value(event->metadata);
    row[EVENT_OCCURRED_AT] = db_timestamp(append_time(call, event));
    row[EVENT_PARTITION] = db_integer(stream->partition);
    row[EVENT_POSITION] = db_integer(result->position);
}

/* Queues the new events of one table; returns the end of the rows used. */
static enum status insert(struct append_call *call, size_t table,
                          struct db_value **rows, struct diag *diag)
{
    struct db_value *first = *rows;
    size_t nrows = 0;

    for (size_t i = 0; i < call->count; i++) {
        if (!append_is_new(&call->items[i]) ||
            call->streams[call->items[i].stream].table != table)
            continue;
        fill_row(call, i, first + nrows * EVENT_COLUMNS);
        nrows++;
    }
    *rows = first + nrows * EVENT_COLUMNS;
    if (nrows == 0)
        return STATUS_OK;
    return db_queue_bulk(call->db, DB_INSERT, &call->store->tables[table].rows,
                         first, nrows, 0, diag);
}

/* Streams and ids were read before: a clash means that another writer came
 * between, and the next try sees what it wrote. */
static enum status lost_race(struct diag *diag)
{
    struct diag clash = *diag;

    return diag_set(diag, STATUS_CONFLICT,
                    "another writer appended to the same stream at the same "
                    "time (%s); run the transaction again",
                    clash.constraint);
}

static enum status insert_all(struct append_call *call, struct diag *diag)
{
    struct event_store *store = call->store;
    struct db_value *rows = arena_alloc(
        &store->scratch, call->nnew * EVENT_COLUMNS * sizeof(*rows));
    enum status status;

    for (size_t t = 0; t < store->ntables; t++) {
        status = insert(call, t, &rows, diag);
        if (status != STATUS_OK)
            return status;
    }
    status = db_flush(call->db, NULL, diag);
    return status == STATUS_UNIQUE ? lost_race(diag) : status;
}

/* Events that repeat an earlier one of the call take its result. */
static void share_results(struct append_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        size_t same_as = call->items[i].same_as;

        if (same_as == APPEND_NOWHERE)
            continue;
        call->results[i] = call->results[same_as];
        call->results[i].repeated = true;
    }
}

enum status append_events(struct event_store *store, struct db *db,
                          const struct append_options *options,
                          const struct append_event *events, size_t count,
                          struct append_result *results, size_t *bad,
                          struct diag *diag)
{
    struct append_call call = {
        .store = store,
        .db = db,
        .options = options,
        .events = events,
        .count = count,
        .results = results,
        .bad = bad,
    };
    enum status status;

    assert(db_in_transaction(db));
    *bad = count;
    if (count == 0)
        return STATUS_OK;
    arena_reset(&store->scratch);
    status = check_all(&call, diag);
    if (status != STATUS_OK)
        return status;
    start_items(&call);
    status = append_repeat_find(&call, diag);
    if (status != STATUS_OK)
        return status;
    give_ids(&call);
    if (call.nnew > 0) {
        status = append_stream_number(&call, diag);
        if (status != STATUS_OK)
            return status;
        status = check_mark(&call, diag);
        if (status != STATUS_OK)
            return status;
        status = draw_positions(&call, diag);
        if (status != STATUS_OK)
            return status;
        status = insert_all(&call, diag);
        if (status != STATUS_OK)
            return status;
    }
    share_results(&call);
    return STATUS_OK;
}
