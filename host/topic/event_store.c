#include "topic/event_store_parts.h"

#include "base/memory.h"
#include "topic/message.h"

#include <assert.h>

static const struct db_column event_columns[EVENT_COLUMNS] = {
    [TOPIC_ID] = {"id", DB_UUID, DB_KEY},
    [TOPIC_TYPE] = {"event_type", DB_TEXT, DB_SET},
    [TOPIC_REVISION] = {"event_revision", DB_INT64, DB_SET},
    [TOPIC_PAYLOAD] = {"payload", DB_TEXT, DB_SET},
    [TOPIC_METADATA] = {"metadata", DB_TEXT, DB_SET},
    [TOPIC_OCCURRED_AT] = {"occurred_at", DB_TIMESTAMP, DB_SET},
    [TOPIC_PARTITION] = {"partition_key", DB_INT64, DB_SET},
    [TOPIC_POSITION] = {"global_position", DB_INT64, DB_SET},
    [EVENT_AGGREGATE_TYPE] = {"aggregate_type", DB_TEXT, DB_SET},
    [EVENT_AGGREGATE_ID] = {"aggregate_id", DB_TEXT, DB_SET},
    [EVENT_SEQUENCE] = {"sequence_no", DB_INT64, DB_SET},
};

static const struct topic_kind event_store_kind = {
    .name = TOPIC_EVENT_STORE,
    .table = TABLE_EVENT_STORE,
    .positions = TABLE_EVENT_STORE_POSITION,
    .columns = event_columns,
    .ncolumns = EVENT_COLUMNS,
    .page = SQL_EVENT_PAGE,
    .page_key = SQL_EVENT_PAGE_AGGREGATE,
    .count = SQL_EVENT_COUNT,
    .census = SQL_EVENT_CENSUS,
};

/* Index of the table of that name, added when it is not there yet. */
static size_t add_table(struct topic *topic, const char *name)
{
    struct topic_table *table;

    for (size_t t = 0; t < topic->ntables; t++) {
        if (strcmp(topic->tables[t].name, name) == 0)
            return t;
    }
    table = &topic->tables[topic->ntables];
    assert(strlen(name) < sizeof(table->name));
    strcpy(table->name, name);
    return topic->ntables++;
}

static void add_own_tables(struct event_store *store, const struct names *names)
{
    for (size_t i = 0; i < names->naggregates; i++) {
        const struct aggregate_tables *own = &names->aggregates[i];
        size_t table = add_table(&store->topic, own->events);
        struct text type = arena_copy(&store->own_names,
                                      text_of(own->aggregate_type));
        bool added;

        map_put(&store->topic.own, type, (int64_t)table, &added);
    }
}

enum status event_store_open(const char *dialect, const struct names *names,
                             const struct catalog *catalog, int partitions,
                             struct event_store **store, struct diag *diag)
{
    struct event_store *opened = mem_alloc(sizeof(*opened));
    struct topic *topic = &opened->topic;
    enum status status;

    topic_add_tables(topic, &event_store_kind, names, names->naggregates + 1);
    add_own_tables(opened, names);
    opened->streams = mem_alloc(topic->ntables * sizeof(*opened->streams));
    status = topic_open(topic, &event_store_kind, dialect, names, catalog,
                        partitions, diag);
    for (size_t t = 0; t < topic->ntables && status == STATUS_OK; t++) {
        struct stream_sql *streams = &opened->streams[t];

        status = topic_statement(topic, t, SQL_APPEND_STREAMS, &streams->text,
                                 &streams->sql, diag);
        if (status == STATUS_OK)
            status = topic_statement(topic, t, SQL_EVENT_STREAM,
                                     &streams->read_text, &streams->read, diag);
    }
    if (status != STATUS_OK) {
        event_store_close(opened);
        return status;
    }
    *store = opened;
    return STATUS_OK;
}

void event_store_close(struct event_store *store)
{
    if (store == NULL)
        return;
    for (size_t t = 0; t < store->topic.ntables; t++) {
        buffer_free(&store->streams[t].text);
        buffer_free(&store->streams[t].read_text);
    }
    mem_free(store->streams);
    map_free(&store->scratch_streams);
    topic_close(&store->topic);
    arena_free(&store->own_names);
    mem_free(store);
}

struct topic *event_store_topic(struct event_store *store)
{
    return &store->topic;
}
