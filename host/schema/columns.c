#include "schema/columns.h"

#include "db/catalog.h"

#define WANTED_MAX 24 /* columns of the widest table, and NULL */

static const char *const WANTED[TABLE_COUNT][WANTED_MAX] = {
    [TABLE_EVENT_STORE] = {"id", "aggregate_id", "aggregate_type",
                           "sequence_no", "event_type", "event_revision",
                           "payload", "metadata", "occurred_at",
                           "partition_key", "global_position"},
    [TABLE_SNAPSHOTS] = {"id", "aggregate_id", "aggregate_type", "sequence_no",
                         "snapshot_version", "payload", "created_at"},
    [TABLE_EVENT_STORE_POSITION] = {"id", "val"},
    [TABLE_CAPTURE] = {"id", "global_position", "partition_key", "event_type",
                       "event_revision", "payload", "metadata", "occurred_at",
                       "message_key"},
    [TABLE_CAPTURE_POSITION] = {"id", "val"},
    [TABLE_MARKS] = {"topic_name", "high_water_mark", "pending_end",
                     "pending_horizon", "topic_start", "lease_owner",
                     "lease_expires_at"},
    [TABLE_PARTITION_METADATA] = {"id", "partitions"},
    [TABLE_READ_MODEL_RECORDS] = {"id", "topic", "topic_position",
                                  "partition_key", "read_model_key",
                                  "read_model_type", "read_model_revision",
                                  "payload", "metadata", "cascade_depth",
                                  "deleted", "occurred_at"},
    [TABLE_READ_MODEL_POSITIONS] = {"topic", "val"},
    [TABLE_READ_MODEL_TOPICS] = {"topic", "switched_on_at", "filled_through",
                                 "filled_at", "switched_off_at"},
    [TABLE_TOPIC_COMPACTION] = {"topic_name", "compacted_through"},
    [TABLE_CONSUMERS] = {"id", "consumer_type", "consumer_name", "state",
                         "halt_reason", "epoch", "declaration_fingerprint",
                         "state_since"},
    [TABLE_CHECKPOINTS] = {"consumer_id", "source_name", "partition_no",
                           "position", "incomplete_through", "replay_through",
                           "epoch"},
    [TABLE_UNDELIVERED] = {"id", "consumer_id", "source_name", "resolved_key",
                           "key_hash", "message_position", "partition_no",
                           "status", "failure_count", "next_retry_at",
                           "failure_reason", "recorded_at", "unresolved",
                           "message_copy"},
    [TABLE_SKIPPED] = {"id", "consumer_id", "source_name", "partition_no",
                       "message_position", "resolved_key", "every_key"},
    [TABLE_INSTANCES] = {"instance_id", "host_name", "started_at",
                         "last_heartbeat", "expires_at"},
    [TABLE_OWNERSHIP] = {"consumer_type", "consumer_name", "partition_no",
                         "instance_id", "generation"},
    [TABLE_MEMBERS] = {"consumer_type", "consumer_name", "instance_id"},
    [TABLE_EPOCHS] = {"projection", "read_model_key", "epoch"},
    [TABLE_SAGA_INSTANCES] = {"id", "saga_type", "saga_id", "state_json",
                              "version", "completed_at"},
    [TABLE_SAGA_DEADLINES] = {"id", "saga_type", "saga_id", "name",
                              "instance_id", "due_at", "payload_json",
                              "metadata_json", "partition_no", "status",
                              "attempts", "next_retry_at", "failure_reason"},
    [TABLE_SAGA_STEPS] = {"id",
                          "instance_id",
                          "saga_type",
                          "saga_id",
                          "step_no",
                          "step_name",
                          "round",
                          "state",
                          "command_id",
                          "compensation_id",
                          "sends",
                          "compensation_sends",
                          "message_json",
                          "deadline_at",
                          "failure_reason",
                          "sent_at",
                          "answered_at",
                          "compensation_sent_at",
                          "compensated_at",
                          "updated_at"},
    [TABLE_COMMAND_RESULTS] = {"id", "aggregate_type", "aggregate_id", "name",
                               "outcome", "created_at"},
    [TABLE_OUTBOX] =
        {"id",           "outbox_route",  "event_id",       "event_type",
         "tenant_id",    "execution_id",  "correlation_id", "causation_id",
         "occurred_at",  "payload",       "status",         "created_at",
         "published_at", "processing_at", "last_error",     "attempts",
         "available_at", "ordering_key",  "claim_token",    "claim_expires_at",
         "hlc",          "traceparent",   "metadata"},
    [TABLE_SCRIPT_VERSIONS] = {"id", "host_id", "host_name", "version",
                               "outcome", "loaded_at", "seen_at", "changes",
                               "error"},
    [TABLE_SCHEMA_VERSION] = {"id", "version", "installed_at", "upgraded_at"},
};

/* Wherever they stand they are keys: A-1, a-1 and "A-1 " are three. */
static const char *const IDENTITIES[] = {
    "aggregate_id", "aggregate_type", "consumer_name", "consumer_type",
    "event_type",   "instance_id",    "message_key",   "name",
    "ordering_key", "outbox_route",   "projection",    "read_model_key",
    "resolved_key", "saga_id",        "saga_type",     "source_name",
    "step_name",    "topic",          "topic_name",
};

const char *const *columns_wanted(enum table_id id)
{
    return WANTED[id];
}

static void append_lower(struct buffer *out, struct text name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        buffer_append_char(out,
                           c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
}

/* A dot cannot be part of a host's name, so the two kinds of key differ. */
static void append_key(struct buffer *out, struct text table,
                       struct text column)
{
    append_lower(out, table);
    if (column.data == NULL)
        return;
    buffer_append_char(out, '.');
    append_lower(out, column);
}

static void remember(struct columns *columns, struct text table,
                     struct text column, struct buffer *scratch)
{
    bool added;

    buffer_clear(scratch);
    append_key(scratch, table, column);
    map_put(&columns->found, arena_copy(&columns->arena, buffer_text(scratch)),
            1, &added);
}

static void remember_merging(struct columns *columns, struct text key,
                             struct text collation)
{
    bool added;

    map_put(&columns->merging, arena_copy(&columns->arena, key),
            (int64_t)columns->collations.len, &added);
    buffer_append_text(&columns->collations, collation);
    buffer_append_char(&columns->collations, '\0');
}

enum status columns_read(struct db *db, struct columns *columns,
                         struct diag *diag)
{
    struct db_sql sql = db_sql_make(
        catalog_raw(db_dialect(db), SQL_SCHEMA_COLUMNS), DB_HOST);
    struct buffer scratch = BUFFER_EMPTY;
    struct db_rows *rows;
    bool more;
    enum status status;

    status = db_query(db, &sql, NULL, 0, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        struct text table = db_get_text(rows, 0);

        remember(columns, table, TEXT_NONE, &scratch);
        remember(columns, table, db_get_text(rows, 1), &scratch);
        if (!db_is_null(rows, 2))
            remember_merging(columns, buffer_text(&scratch),
                             db_get_text(rows, 2));
    }
    db_rows_close(rows);
    buffer_free(&scratch);
    return status;
}

void columns_free(struct columns *columns)
{
    map_free(&columns->found);
    map_free(&columns->merging);
    buffer_free(&columns->collations);
    arena_free(&columns->arena);
}

bool columns_has(const struct columns *columns, const char *table,
                 const char *column)
{
    struct buffer key = BUFFER_EMPTY;
    bool has;

    append_key(&key, text_of(table), text_of(column));
    has = map_get(&columns->found, buffer_text(&key)) != MAP_ABSENT;
    buffer_free(&key);
    return has;
}

const char *columns_lacking(const struct columns *columns, const char *table,
                            enum table_id like)
{
    for (size_t i = 0; WANTED[like][i] != NULL; i++)
        if (!columns_has(columns, table, WANTED[like][i]))
            return WANTED[like][i];
    return NULL;
}

static bool is_identity(const char *column)
{
    for (size_t i = 0; i < sizeof(IDENTITIES) / sizeof(*IDENTITIES); i++)
        if (strcmp(column, IDENTITIES[i]) == 0)
            return true;
    return false;
}

const char *columns_merging(const struct columns *columns, const char *table,
                            enum table_id like, const char **collation)
{
    struct buffer key = BUFFER_EMPTY;
    const char *found = NULL;

    for (size_t i = 0; found == NULL && WANTED[like][i] != NULL; i++) {
        const char *column = WANTED[like][i];
        int64_t offset;

        if (!is_identity(column))
            continue;
        buffer_clear(&key);
        append_key(&key, text_of(table), text_of(column));
        offset = map_get(&columns->merging, buffer_text(&key));
        if (offset == MAP_ABSENT)
            continue;
        found = column;
        *collation = columns->collations.data + offset;
    }
    buffer_free(&key);
    return found;
}
