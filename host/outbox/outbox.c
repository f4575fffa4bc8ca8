#include "outbox/outbox.h"

#include <string.h>

enum {
    COLUMN_ID,
    COLUMN_ROUTE,
    COLUMN_EVENT_ID,
    COLUMN_TYPE,
    COLUMN_TENANT,
    COLUMN_EXECUTION,
    COLUMN_CORRELATION,
    COLUMN_CAUSATION,
    COLUMN_OCCURRED_AT,
    COLUMN_PAYLOAD,
    COLUMN_STATUS,
    COLUMN_CREATED_AT,
    COLUMN_AVAILABLE_AT,
    COLUMN_ORDERING_KEY,
    COLUMN_TRACEPARENT,
    COLUMNS
};

static const struct db_column columns[COLUMNS] = {
    [COLUMN_ID] = {"id", DB_UUID, DB_KEY},
    [COLUMN_ROUTE] = {"outbox_route", DB_TEXT, DB_SET},
    [COLUMN_EVENT_ID] = {"event_id", DB_UUID, DB_SET},
    [COLUMN_TYPE] = {"event_type", DB_TEXT, DB_SET},
    [COLUMN_TENANT] = {"tenant_id", DB_UUID, DB_SET},
    [COLUMN_EXECUTION] = {"execution_id", DB_UUID, DB_SET},
    [COLUMN_CORRELATION] = {"correlation_id", DB_UUID, DB_SET},
    [COLUMN_CAUSATION] = {"causation_id", DB_UUID, DB_SET},
    [COLUMN_OCCURRED_AT] = {"occurred_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_PAYLOAD] = {"payload", DB_TEXT, DB_SET},
    [COLUMN_STATUS] = {"status", DB_TEXT, DB_SET},
    [COLUMN_CREATED_AT] = {"created_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_AVAILABLE_AT] = {"available_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_ORDERING_KEY] = {"ordering_key", DB_TEXT, DB_SET},
    [COLUMN_TRACEPARENT] = {"traceparent", DB_TEXT, DB_SET},
};

static struct db_value uuid_or_null(const struct uuid *id)
{
    return id != NULL ? db_uuid(*id) : db_null();
}

/* --- what is there already ------------------------------------------------ */

/* A call under way. */
struct staging {
    const struct outbox_message *messages;
    size_t count;
    bool *staged; /* by message: it is there, or comes twice */
    size_t *bad;
};

static bool same_text(struct text a, struct text b)
{
    if (a.data == NULL || b.data == NULL)
        return a.data == b.data;
    return text_equal(a, b);
}

static bool same_uuid(const struct uuid *a, const struct uuid *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || uuid_equal(a, b));
}

/* The first part in which two messages of one route and id differ, or NULL. */
static const char *difference(const struct outbox_message *a,
                              const struct outbox_message *b)
{
    if (!text_equal(a->type, b->type))
        return "type";
    if (!text_equal(a->payload, b->payload))
        return "payload";
    if (!same_text(a->ordering_key, b->ordering_key))
        return "ordering key";
    if (!same_uuid(a->tenant_id, b->tenant_id))
        return "tenant_id";
    if (!same_uuid(a->execution_id, b->execution_id))
        return "execution_id";
    return NULL;
}

static enum status take_as_staged(struct staging *staging, size_t i,
                                  const struct outbox_message *was,
                                  struct diag *diag)
{
    const struct outbox_message *m = &staging->messages[i];
    const char *differs = difference(m, was);
    char id[UUID_TEXT_LEN + 1];

    staging->staged[i] = true;
    if (differs == NULL)
        return STATUS_OK;
    *staging->bad = i;
    uuid_format(&m->event_id, id);
    return diag_set(diag, STATUS_REFUSED,
                    "the message %s for '%.*s' is in the outbox with another "
                    "%s; give the new one an id of its own",
                    id, TEXT_ARGS(m->route), differs);
}

static struct text text_or_none(struct db_rows *row, size_t column)
{
    return db_is_null(row, column) ? TEXT_NONE : db_get_text(row, column);
}

static const struct uuid *uuid_or_none(struct db_rows *row, size_t column,
                                       struct uuid *id)
{
    if (db_is_null(row, column) || !uuid_parse(db_get_text(row, column), id))
        return NULL;
    return id;
}

static enum status take_known(void *arg, struct db_rows *row, struct diag *diag)
{
    struct staging *staging = arg;
    struct uuid tenant, execution;
    struct outbox_message was = {
        .route = db_get_text(row, 1),
        .type = db_get_text(row, 2),
        .payload = db_get_text(row, 3),
        .ordering_key = text_or_none(row, 4),
        .tenant_id = uuid_or_none(row, 5, &tenant),
        .execution_id = uuid_or_none(row, 6, &execution),
    };
    enum status status = STATUS_OK;

    if (!uuid_parse(db_get_text(row, 0), &was.event_id))
        return diag_set(diag, STATUS_PERMANENT,
                        "the outbox holds an event id that is no UUID: %.*s",
                        TEXT_ARGS(db_get_text(row, 0)));
    for (size_t i = 0; status == STATUS_OK && i < staging->count; i++)
        if (staging->messages[i].own_id &&
            uuid_equal(&staging->messages[i].event_id, &was.event_id) &&
            text_equal(staging->messages[i].route, was.route))
            status = take_as_staged(staging, i, &was, diag);
    return status;
}

/* One id twice in a call is one message. */
static enum status find_twins(struct staging *staging, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; i < staging->count; i++) {
        const struct outbox_message *m = &staging->messages[i];

        for (size_t j = 0; m->own_id && status == STATUS_OK && j < i; j++)
            if (staging->messages[j].own_id && !staging->staged[j] &&
                uuid_equal(&staging->messages[j].event_id, &m->event_id) &&
                text_equal(staging->messages[j].route, m->route))
                status = take_as_staged(staging, i, &staging->messages[j],
                                        diag);
    }
    return status;
}

static enum status find_known(const struct outbox *outbox,
                              struct staging *staging, struct arena *arena,
                              struct diag *diag)
{
    struct text *ids = arena_alloc(arena, staging->count * sizeof(*ids));
    struct db_value param;
    size_t count = 0;
    enum status status;

    for (size_t i = 0; i < staging->count; i++) {
        char text[UUID_TEXT_LEN + 1];

        if (!staging->messages[i].own_id)
            continue;
        uuid_format(&staging->messages[i].event_id, text);
        ids[count++] = arena_copy(arena, text_of(text));
    }
    if (count == 0)
        return STATUS_OK;
    param = db_texts(ids, count);
    status = db_rows_each(outbox->db,
                          catalog_sql(outbox->catalog, SQL_OUTBOX_KNOWN),
                          &param, 1, take_known, staging, diag);
    return status == STATUS_OK ? find_twins(staging, diag) : status;
}

/* --- staging -------------------------------------------------------------- */

static enum status check_text(const char *what, struct text text, bool optional,
                              struct diag *diag)
{
    size_t chars;

    if (optional && text.data == NULL)
        return STATUS_OK;
    if (text.len == 0)
        return diag_set(diag, STATUS_LIMIT, "%s is empty", what);
    chars = text_utf8_length(text);
    if (chars > OUTBOX_TEXT_MAX)
        return diag_set(diag, STATUS_LIMIT,
                        "%s has %zu characters, at most %d are possible", what,
                        chars, OUTBOX_TEXT_MAX);
    return STATUS_OK;
}

static enum status check(const struct outbox_message *m, struct diag *diag)
{
    enum status status = check_text("the publisher", m->route, false, diag);

    if (status == STATUS_OK)
        status = check_text("the message type", m->type, false, diag);
    if (status == STATUS_OK)
        status = check_text("the ordering key", m->ordering_key, true, diag);
    if (status == STATUS_OK)
        status = check_text("the traceparent", m->traceparent, true, diag);
    return status;
}

static void fill_row(const struct outbox *outbox,
                     const struct outbox_message *m, int64_t now_us,
                     struct db_value *v)
{
    v[COLUMN_ID] = db_uuid(uuid_v7(outbox->ids, now_us));
    v[COLUMN_ROUTE] = db_text_value(m->route);
    v[COLUMN_EVENT_ID] = db_uuid(m->event_id);
    v[COLUMN_TYPE] = db_text_value(m->type);
    v[COLUMN_TENANT] = uuid_or_null(m->tenant_id);
    v[COLUMN_EXECUTION] = uuid_or_null(m->execution_id);
    v[COLUMN_CORRELATION] = uuid_or_null(m->correlation_id);
    v[COLUMN_CAUSATION] = uuid_or_null(m->causation_id);
    v[COLUMN_OCCURRED_AT] = db_timestamp(m->occurred_at);
    v[COLUMN_PAYLOAD] = db_text_value(m->payload);
    v[COLUMN_STATUS] = db_string("pending");
    v[COLUMN_CREATED_AT] = db_timestamp(now_us);
    v[COLUMN_AVAILABLE_AT] = db_timestamp(now_us);
    v[COLUMN_ORDERING_KEY] = db_text_value(m->ordering_key);
    v[COLUMN_TRACEPARENT] = db_text_value(m->traceparent);
}

enum status outbox_stage(const struct outbox *outbox,
                         const struct outbox_message *messages, size_t count,
                         int64_t now_us, struct arena *arena, size_t *bad,
                         struct diag *diag)
{
    struct staging staging = {
        .messages = messages,
        .count = count,
        .staged = arena_alloc_zero(arena, count + 1),
        .bad = bad,
    };
    struct db_table *table = arena_alloc_zero(arena, sizeof(*table));
    struct db_value *values;
    size_t rows = 0;
    enum status status = STATUS_OK;

    *bad = 0;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        *bad = i;
        status = check(&messages[i], diag);
    }
    if (status == STATUS_OK)
        status = find_known(outbox, &staging, arena, diag);
    if (status != STATUS_OK)
        return status;
    values = arena_alloc(arena, (count * COLUMNS + 1) * sizeof(*values));
    for (size_t i = 0; i < count; i++)
        if (!staging.staged[i])
            fill_row(outbox, &messages[i], now_us, values + rows++ * COLUMNS);
    if (rows == 0)
        return STATUS_OK;
    *table = (struct db_table){
        .name = outbox->names->table[TABLE_OUTBOX],
        .columns = columns,
        .ncolumns = COLUMNS,
        .origin = DB_HOST,
    };
    return db_queue_bulk(outbox->db, DB_INSERT, table, values, rows, -1, diag);
}

enum status outbox_resend(const struct outbox *outbox, struct text route,
                          const struct text *event_ids, size_t count,
                          int64_t now_us, struct diag *diag)
{
    const struct db_value params[] = {
        db_text_value(route), db_texts(event_ids, count), db_timestamp(now_us)};

    if (count == 0)
        return STATUS_OK;
    return db_queue(outbox->db, catalog_sql(outbox->catalog, SQL_OUTBOX_RESEND),
                    params, 3, DB_ANY_ROWS, -1, diag);
}
