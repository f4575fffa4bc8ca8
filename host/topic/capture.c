#include "topic/capture.h"

#include "base/memory.h"
#include "topic/append_call.h"
#include "topic/message.h"

struct capture {
    struct topic topic;
};

static const struct db_column capture_columns[CAPTURE_COLUMNS] = {
    [TOPIC_ID] = {"id", DB_UUID, DB_KEY},
    [TOPIC_TYPE] = {"event_type", DB_TEXT, DB_SET},
    [TOPIC_REVISION] = {"event_revision", DB_INT64, DB_SET},
    [TOPIC_PAYLOAD] = {"payload", DB_TEXT, DB_SET},
    [TOPIC_METADATA] = {"metadata", DB_TEXT, DB_SET},
    [TOPIC_OCCURRED_AT] = {"occurred_at", DB_TIMESTAMP, DB_SET},
    [TOPIC_PARTITION] = {"partition_key", DB_INT64, DB_SET},
    [TOPIC_POSITION] = {"global_position", DB_INT64, DB_SET},
    [CAPTURE_KEY] = {"message_key", DB_TEXT, DB_SET},
};

static const struct topic_kind capture_kind = {
    .name = TOPIC_EVENT_CAPTURE,
    .table = TABLE_CAPTURE,
    .positions = TABLE_CAPTURE_POSITION,
    .columns = capture_columns,
    .ncolumns = CAPTURE_COLUMNS,
    .deletes = true,
    .page = SQL_CAPTURE_PAGE,
    .page_key = SQL_CAPTURE_PAGE_KEY,
    .count = SQL_CAPTURE_COUNT,
    .census = SQL_CAPTURE_CENSUS,
};

enum status capture_open(const char *dialect, const struct names *names,
                         const struct catalog *catalog, int partitions,
                         struct capture **capture, struct diag *diag)
{
    struct capture *opened = mem_alloc(sizeof(*opened));
    enum status status;

    topic_add_tables(&opened->topic, &capture_kind, names, 1);
    status = topic_open(&opened->topic, &capture_kind, dialect, names, catalog,
                        partitions, diag);
    if (status != STATUS_OK) {
        capture_close(opened);
        return status;
    }
    *capture = opened;
    return STATUS_OK;
}

void capture_close(struct capture *capture)
{
    if (capture == NULL)
        return;
    topic_close(&capture->topic);
    mem_free(capture);
}

struct topic *capture_topic(struct capture *capture)
{
    return &capture->topic;
}

enum status capture_append(struct capture *capture, struct db *db,
                           const struct append_options *options,
                           const struct append_event *events, size_t count,
                           struct append_result *results, size_t *bad,
                           struct diag *diag)
{
    struct append_call call = {
        .topic = &capture->topic,
        .db = db,
        .options = options,
        .events = events,
        .count = count,
        .results = results,
        .bad = bad,
    };
    enum status status = append_call_begin(&call, diag);

    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        results[i].sequence = MESSAGE_NO_SEQUENCE;
    return status == STATUS_OK ? append_call_write(&call, diag) : status;
}
