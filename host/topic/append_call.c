#include "topic/append_call.h"

#include "base/hash.h"
#include "topic/capture.h"
#include "topic/high_water_mark.h"
#include "topic/notify.h"

#include <assert.h>

static enum status check_all(struct append_call *call, struct diag *diag)
{
    for (size_t i = 0; i < call->count; i++) {
        const struct append_event *event = &call->events[i];
        int64_t limit = call->options->payload_limit;
        enum status status = call->store != NULL
                                 ? append_check(event, limit, diag)
                                 : capture_check(event, limit, diag);

        if (status != STATUS_OK) {
            *call->bad = i;
            return status;
        }
    }
    return STATUS_OK;
}

static void start_items(struct append_call *call)
{
    call->items = arena_alloc(&call->topic->scratch,
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
                                "the position counter of topic %s has no row; "
                                "run `moontide schema upgrade`",
                                topic_name(call->topic));
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
    struct topic *topic = call->topic;
    struct high_water_mark mark;
    enum status status;

    if (topic->mark_checked)
        return STATUS_OK;
    status = high_water_mark_read(call->db, topic->catalog, topic_name(topic),
                                  &mark, diag);
    if (status == STATUS_OK)
        status = high_water_mark_check(topic_name(topic), &mark, diag);
    topic->mark_checked = status == STATUS_OK;
    return status;
}

static enum status draw_positions(struct append_call *call, struct diag *diag)
{
    struct db_value params[] = {db_integer((int64_t)call->nnew)};
    struct db_rows *rows;
    enum status status;

    status = db_query(call->db, &call->topic->positions, params, 1, &rows,
                      diag);
    if (status != STATUS_OK)
        return status;
    status = hand_out(call, rows, diag);
    db_rows_close(rows);
    return status;
}

/* Messages without a key have no order among them: each goes where its own id
 * belongs. */
static int partition_of(const struct append_call *call, size_t index)
{
    struct text key = call->events[index].key;

    if (key.data == NULL)
        key = append_id_text(&call->topic->scratch, &call->results[index].id);
    return hash_partition(key, call->topic->partitions);
}

static void fill_row(const struct append_call *call, size_t index,
                     struct db_value *row)
{
    const struct append_event *event = &call->events[index];
    const struct append_result *result = &call->results[index];

    row[TOPIC_ID] = db_uuid(result->id);
    row[TOPIC_TYPE] = db_text_value(event->type);
    row[TOPIC_REVISION] = db_integer(event->revision);
    row[TOPIC_PAYLOAD] = db_text_value(event->payload);
    row[TOPIC_METADATA] = db_text_value(event->metadata);
    row[TOPIC_OCCURRED_AT] = db_timestamp(append_time(call, event));
    row[TOPIC_POSITION] = db_integer(result->position);
    if (call->store == NULL) {
        row[TOPIC_PARTITION] = db_integer(partition_of(call, index));
        row[CAPTURE_KEY] = db_text_value(event->key);
        return;
    }
    row[TOPIC_PARTITION] = db_integer(
        call->streams[call->items[index].stream].partition);
    row[EVENT_AGGREGATE_TYPE] = db_text_value(event->aggregate_type);
    row[EVENT_AGGREGATE_ID] = db_text_value(event->aggregate_id);
    row[EVENT_SEQUENCE] = db_integer(result->sequence);
}

static size_t table_of(const struct append_call *call, size_t index)
{
    return call->store == NULL ? 0
                               : call->streams[call->items[index].stream].table;
}

/* Queues the new events of one table; returns the end of the rows used. */
static enum status insert(struct append_call *call, size_t table,
                          struct db_value **rows, struct diag *diag)
{
    const size_t width = call->topic->kind->ncolumns;
    struct db_value *first = *rows;
    size_t nrows = 0;

    for (size_t i = 0; i < call->count; i++) {
        if (!append_is_new(&call->items[i]) || table_of(call, i) != table)
            continue;
        fill_row(call, i, first + nrows * width);
        nrows++;
    }
    *rows = first + nrows * width;
    if (nrows == 0)
        return STATUS_OK;
    return db_queue_bulk(call->db, DB_INSERT, &call->topic->tables[table].rows,
                         first, nrows, 0, diag);
}

/* Streams and ids were read before: a clash means that another writer came
 * between, and the next try sees what it wrote. */
static enum status lost_race(const struct append_call *call, struct diag *diag)
{
    struct diag clash = *diag;

    return diag_set(diag, STATUS_CONFLICT,
                    "another writer %s at the same time (%s); run the "
                    "transaction again",
                    call->store != NULL ? "appended to the same stream"
                                        : "emitted an event with the same id",
                    clash.constraint);
}

static enum status insert_all(struct append_call *call, struct diag *diag)
{
    struct topic *topic = call->topic;
    struct db_value *rows = arena_alloc(
        &topic->scratch, call->nnew * topic->kind->ncolumns * sizeof(*rows));
    enum status status;

    for (size_t t = 0; t < topic->ntables; t++) {
        status = insert(call, t, &rows, diag);
        if (status != STATUS_OK)
            return status;
    }
    status = call->options->notify ? notify_send(call->db, topic->catalog, diag)
                                   : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    status = db_flush(call->db, NULL, diag);
    return status == STATUS_UNIQUE ? lost_race(call, diag) : status;
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

enum status append_call_begin(struct append_call *call, struct diag *diag)
{
    enum status status;

    assert(db_in_transaction(call->db));
    *call->bad = call->count;
    arena_reset(&call->topic->scratch);
    status = check_all(call, diag);
    if (status != STATUS_OK)
        return status;
    start_items(call);
    status = append_repeat_find(call, diag);
    if (status == STATUS_OK)
        give_ids(call);
    return status;
}

enum status append_call_write(struct append_call *call, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (call->nnew > 0)
        status = check_mark(call, diag);
    if (status == STATUS_OK && call->nnew > 0)
        status = draw_positions(call, diag);
    if (status == STATUS_OK && call->nnew > 0)
        status = insert_all(call, diag);
    if (status == STATUS_OK)
        share_results(call);
    return status;
}
