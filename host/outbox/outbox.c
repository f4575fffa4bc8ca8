#include "outbox/outbox.h"

#include "base/map.h"

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
    COLUMN_METADATA,
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
    [COLUMN_METADATA] = {"metadata", DB_TEXT, DB_SET},
};

static struct db_value uuid_or_null(const struct uuid *id)
{
    return id != NULL ? db_uuid(*id) : db_null();
}

/* --- what is there already ------------------------------------------------ */

/* A call under way. Messages of one route and id form a chain: the map has the
 * last one, `before` leads to the others. */
struct staging {
    const struct outgoing *messages;
    size_t count;
    bool *staged; /* by message: nothing is to be inserted */
    bool *known;  /* by message to be sent again: it is there */
    struct map named;
    int64_t *before;
    struct buffer scratch;
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
static const char *difference(const struct outgoing *a,
                              const struct outgoing *b)
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
                                  const struct outgoing *was, struct diag *diag)
{
    const struct outgoing *m = &staging->messages[i];
    const char *differs;
    char id[UUID_TEXT_LEN + 1];

    staging->staged[i] = true;
    if (m->again) {
        staging->known[i] = true;
        return STATUS_OK;
    }
    differs = difference(m, was);
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

/* The id and the route, in the scratch buffer. */
static struct text name_of(struct staging *staging, const struct uuid *id,
                           struct text route)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id, text);
    buffer_clear(&staging->scratch);
    buffer_append_string(&staging->scratch, text);
    buffer_append_text(&staging->scratch, route);
    return buffer_text(&staging->scratch);
}

static enum status take_known(void *arg, struct db_rows *row, struct diag *diag)
{
    struct staging *staging = arg;
    struct uuid tenant, execution;
    struct outgoing was = {
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
    for (int64_t i = map_get(&staging->named,
                             name_of(staging, &was.event_id, was.route));
         status == STATUS_OK && i != MAP_ABSENT; i = staging->before[i])
        status = take_as_staged(staging, (size_t)i, &was, diag);
    return status;
}

/* One id twice in a call is one message, and the first of them is it. */
static enum status find_twins(struct staging *staging, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < staging->count; i++)
        for (int64_t j = staging->before[i];
             status == STATUS_OK && j != MAP_ABSENT; j = staging->before[j])
            if (!staging->staged[j] && !staging->messages[j].again)
                status = take_as_staged(staging, i, &staging->messages[j],
                                        diag);
    return status;
}

static enum status find_missing(struct staging *staging, struct diag *diag)
{
    char id[UUID_TEXT_LEN + 1];

    for (size_t i = 0; i < staging->count; i++) {
        const struct outgoing *m = &staging->messages[i];

        if (!m->again || staging->known[i] || m->payload.len > 0)
            continue; /* one that brings its content is staged anew */
        *staging->bad = i;
        uuid_format(&m->event_id, id);
        return diag_set(diag, STATUS_REFUSED,
                        "the message %s for '%.*s' cannot be sent again: it is "
                        "no longer in the outbox",
                        id, TEXT_ARGS(m->route));
    }
    return STATUS_OK;
}

/* Enters the messages with ids of their own; how many there are. */
static size_t enter_names(struct staging *staging, struct text *ids,
                          struct arena *arena)
{
    size_t count = 0;

    for (size_t i = 0; i < staging->count; i++) {
        const struct outgoing *m = &staging->messages[i];
        struct text name;
        bool added;

        staging->before[i] = MAP_ABSENT;
        if (!m->own_id && !m->again)
            continue;
        name = arena_copy(arena, name_of(staging, &m->event_id, m->route));
        ids[count++] = (struct text){name.data, UUID_TEXT_LEN};
        staging->before[i] = map_put(&staging->named, name, (int64_t)i, &added);
        if (added)
            staging->before[i] = MAP_ABSENT;
        else
            map_set(&staging->named, name, (int64_t)i);
    }
    return count;
}

static enum status find_known(const struct outbox *outbox,
                              struct staging *staging, struct arena *arena,
                              struct diag *diag)
{
    struct text *ids = arena_alloc(arena, (staging->count + 1) * sizeof(*ids));
    size_t count = enter_names(staging, ids, arena);
    struct db_value param = db_texts(ids, count);
    enum status status;

    if (count == 0)
        return STATUS_OK;
    status = db_rows_each(outbox->db,
                          catalog_sql(outbox->catalog, SQL_OUTBOX_KNOWN),
                          &param, 1, take_known, staging, diag);
    if (status == STATUS_OK)
        status = find_twins(staging, diag);
    return status == STATUS_OK ? find_missing(staging, diag) : status;
}

/* --- staging -------------------------------------------------------------- */

static void fill_row(const struct outbox *outbox, const struct outgoing *m,
                     int64_t now_us, struct db_value *v)
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
    v[COLUMN_METADATA] = db_text_value(m->metadata);
}

static enum status insert(const struct outbox *outbox,
                          const struct staging *staging, int64_t now_us,
                          struct arena *arena, struct diag *diag)
{
    struct db_table *table = arena_alloc_zero(arena, sizeof(*table));
    struct db_value *values = arena_alloc(
        arena, (staging->count * COLUMNS + 1) * sizeof(*values));
    size_t rows = 0;

    for (size_t i = 0; i < staging->count; i++)
        if (!staging->staged[i])
            fill_row(outbox, &staging->messages[i], now_us,
                     values + rows++ * COLUMNS);
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

static enum status resend(const struct outbox *outbox,
                          const struct staging *staging, int64_t now_us,
                          struct arena *arena, struct diag *diag)
{
    struct text *routes = arena_alloc(arena, (staging->count + 1) * 2 *
                                                 sizeof(*routes));
    struct text *ids = routes + staging->count + 1;
    struct db_value params[3];
    size_t count = 0;

    for (size_t i = 0; i < staging->count; i++) {
        const struct outgoing *m = &staging->messages[i];
        char id[UUID_TEXT_LEN + 1];

        if (!m->again)
            continue;
        uuid_format(&m->event_id, id);
        routes[count] = m->route;
        ids[count++] = arena_copy(arena, text_of(id));
    }
    if (count == 0)
        return STATUS_OK;
    params[0] = db_texts(routes, count);
    params[1] = db_texts(ids, count);
    params[2] = db_timestamp(now_us);
    return db_queue(outbox->db, catalog_sql(outbox->catalog, SQL_OUTBOX_RESEND),
                    params, 3, DB_ANY_ROWS, -1, diag);
}

enum status outbox_stage(const struct outbox *outbox,
                         const struct outgoing *messages, size_t count,
                         int64_t now_us, struct arena *arena, size_t *bad,
                         struct diag *diag)
{
    struct staging staging = {
        .messages = messages,
        .count = count,
        .staged = arena_alloc_zero(arena, 2 * count + 1),
        .named = MAP_EMPTY,
        .before = arena_alloc(arena, (count + 1) * sizeof(*staging.before)),
        .scratch = BUFFER_EMPTY,
        .bad = bad,
    };
    enum status status = STATUS_OK;

    staging.known = staging.staged + count;
    *bad = 0;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        *bad = i;
        status = outgoing_check(&messages[i], diag);
    }
    if (status == STATUS_OK)
        status = find_known(outbox, &staging, arena, diag);
    map_free(&staging.named);
    buffer_free(&staging.scratch);
    if (status == STATUS_OK)
        status = insert(outbox, &staging, now_us, arena, diag);
    return status == STATUS_OK ? resend(outbox, &staging, now_us, arena, diag)
                               : status;
}

static enum status stage(void *self, const struct outgoing *messages,
                         size_t count, int64_t now_us, struct arena *arena,
                         size_t *bad, struct diag *diag)
{
    return outbox_stage(self, messages, count, now_us, arena, bad, diag);
}

struct outgoing_stage outbox_outgoing(struct outbox *outbox)
{
    return (struct outgoing_stage){.stage = stage, .self = outbox};
}
