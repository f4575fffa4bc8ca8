#include "topic/event_store_parts.h"

#include "base/memory.h"

#include <assert.h>

static const struct db_column event_columns[EVENT_COLUMNS] = {
    [EVENT_ID] = {"id", DB_UUID, DB_KEY},
    [EVENT_AGGREGATE_TYPE] = {"aggregate_type", DB_TEXT, DB_SET},
    [EVENT_AGGREGATE_ID] = {"aggregate_id", DB_TEXT, DB_SET},
    [EVENT_SEQUENCE] = {"sequence_no", DB_INT64, DB_SET},
    [EVENT_TYPE] = {"event_type", DB_TEXT, DB_SET},
    [EVENT_REVISION] = {"event_revision", DB_INT64, DB_SET},
    [EVENT_PAYLOAD] = {"payload", DB_TEXT, DB_SET},
    [EVENT_METADATA] = {"metadata", DB_TEXT, DB_SET},
    [EVENT_OCCURRED_AT] = {"occurred_at", DB_TIMESTAMP, DB_SET},
    [EVENT_PARTITION] = {"partition_key", DB_INT64, DB_SET},
    [EVENT_POSITION] = {"global_position", DB_INT64, DB_SET},
};

size_t event_store_table_of(const struct event_store *store,
                            struct text aggregate_type)
{
    int64_t table = map_get(&store->own, aggregate_type);

    return table == MAP_ABSENT ? 0 : (size_t)table;
}

enum status event_store_fill(const struct event_store *store, size_t table,
                             enum sql_statement statement, struct buffer *out,
                             struct diag *diag)
{
    return catalog_fill(catalog_raw(store->dialect, statement),
                        store->tables[table].fill, out, diag);
}

/* Index of the table of that name, added when it is not there yet. */
static size_t add_table(struct event_store *store, const char *name)
{
    struct event_table *table;

    for (size_t i = 0; i < store->ntables; i++) {
        if (strcmp(store->tables[i].name, name) == 0)
            return i;
    }
    table = &store->tables[store->ntables];
    assert(strlen(name) < sizeof(table->name));
    strcpy(table->name, name);
    return store->ntables++;
}

static void add_tables(struct event_store *store, const struct names *names)
{
    /* never grown: statements point into it */
    store->tables = mem_alloc((names->naggregates + 1) *
                              sizeof(*store->tables));
    add_table(store, names->table[TABLE_EVENT_STORE]);
    for (size_t i = 0; i < names->naggregates; i++) {
        const struct aggregate_tables *own = &names->aggregates[i];
        size_t table = add_table(store, own->events);
        struct text type = arena_copy(&store->own_names,
                                      text_of(own->aggregate_type));
        bool added;

        map_put(&store->own, type, (int64_t)table, &added);
    }
}

static void fill_names(struct event_table *table, const struct names *names)
{
    memcpy(table->fill, names->fill, sizeof(table->fill));
    for (size_t i = 0; table->fill[i].placeholder != NULL; i++) {
        if (strcmp(table->fill[i].placeholder, "event_store_table") == 0)
            table->fill[i].value = table->name;
    }
    table->rows = (struct db_table){
        .name = table->name,
        .columns = event_columns,
        .ncolumns = EVENT_COLUMNS,
        .origin = DB_HOST,
    };
}

static enum status fill_statements(struct event_store *store, size_t index,
                                   struct diag *diag)
{
    struct event_table *table = &store->tables[index];
    enum status status;

    status = event_store_fill(store, index, SQL_APPEND_STREAMS,
                              &table->streams_text, diag);
    if (status != STATUS_OK)
        return status;
    status = event_store_fill(store, index, SQL_EVENT_COUNT, &table->count_text,
                              diag);
    if (status != STATUS_OK)
        return status;
    status = event_store_fill(store, index, SQL_EVENT_CENSUS,
                              &table->census_text, diag);
    if (status != STATUS_OK)
        return status;
    table->streams = db_sql_make(buffer_text(&table->streams_text), DB_HOST);
    table->count = db_sql_make(buffer_text(&table->count_text), DB_HOST);
    table->census = db_sql_make(buffer_text(&table->census_text), DB_HOST);
    return STATUS_OK;
}

enum status event_store_open(const char *dialect, const struct names *names,
                             const struct catalog *catalog, int partitions,
                             struct event_store **store, struct diag *diag)
{
    struct event_store *opened = mem_alloc(sizeof(*opened));
    enum status status = STATUS_OK;

    assert(partitions > 0);
    opened->dialect = mem_copy_text(dialect, strlen(dialect));
    opened->catalog = catalog;
    opened->partitions = partitions;
    add_tables(opened, names);
    for (size_t i = 0; i < opened->ntables && status == STATUS_OK; i++) {
        fill_names(&opened->tables[i], names);
        status = fill_statements(opened, i, diag);
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
    while (store->pages != NULL) {
        struct event_page_sql *next = store->pages->next;

        buffer_free(&store->pages->text);
        mem_free(store->pages->wanted);
        mem_free(store->pages);
        store->pages = next;
    }
    for (size_t i = 0; i < store->ntables; i++) {
        buffer_free(&store->tables[i].streams_text);
        buffer_free(&store->tables[i].count_text);
        buffer_free(&store->tables[i].census_text);
    }
    mem_free(store->tables);
    map_free(&store->own);
    arena_free(&store->own_names);
    map_free(&store->scratch_streams);
    map_free(&store->scratch_ids);
    arena_free(&store->scratch);
    mem_free(store->dialect);
    mem_free(store);
}
