#include "topic/topic_parts.h"

#include "base/memory.h"
#include "topic/read_model_topic.h"

#include <assert.h>
#include <string.h>

const char *topic_name(const struct topic *topic)
{
    return topic->name;
}

struct topic *topics_find(const struct topics *topics, const char *name)
{
    for (size_t i = 0; i < topics->count; i++) {
        if (strcmp(topic_name(topics->list[i]), name) == 0)
            return topics->list[i];
    }
    return topics->read_models != NULL
               ? read_model_topics_find(topics->read_models, name)
               : NULL;
}

size_t topic_table_of(const struct topic *topic, struct text aggregate_type)
{
    int64_t table = map_get(&topic->own, aggregate_type);

    return table == MAP_ABSENT ? 0 : (size_t)table;
}

enum status topic_fill(const struct topic *topic, size_t table,
                       enum sql_statement statement, struct buffer *out,
                       struct diag *diag)
{
    return catalog_fill(catalog_raw(topic->dialect, statement),
                        topic->tables[table].fill, out, diag);
}

enum status topic_statement(const struct topic *topic, size_t table,
                            enum sql_statement statement, struct buffer *text,
                            struct db_sql *sql, struct diag *diag)
{
    enum status status = topic_fill(topic, table, statement, text, diag);

    if (status == STATUS_OK)
        *sql = db_sql_make(buffer_text(text), DB_HOST);
    return status;
}

void topic_add_tables(struct topic *topic, const struct topic_kind *kind,
                      const struct names *names, size_t count)
{
    topic->tables = mem_alloc(count * sizeof(*topic->tables));
    strcpy(topic->tables[0].name, names->table[kind->table]);
    topic->ntables = 1;
}

/* Gives a placeholder of a table's statements another value. */
static void refill(struct catalog_name *fill, enum table_id id,
                   const char *value)
{
    const char *placeholder = names_placeholder(id);

    for (size_t i = 0; fill[i].placeholder != NULL; i++) {
        if (strcmp(fill[i].placeholder, placeholder) == 0)
            fill[i].value = value;
    }
}

static void fill_names(const struct topic *topic, struct topic_table *table,
                       const struct names *names)
{
    memcpy(table->fill, names->fill, sizeof(table->fill));
    refill(table->fill, topic->kind->table, table->name);
    table->rows = (struct db_table){
        .name = table->name,
        .columns = topic->kind->columns,
        .ncolumns = topic->kind->ncolumns,
        .origin = DB_HOST,
    };
}

/* Positions are drawn by one statement, whatever they number. */
static enum status fill_positions(struct topic *topic,
                                  const struct names *names, struct diag *diag)
{
    struct catalog_name fill[TABLE_COUNT + 1];
    enum status status;

    memcpy(fill, names->fill, sizeof(fill));
    refill(fill, TABLE_EVENT_STORE_POSITION,
           names->table[topic->kind->positions]);
    status = catalog_fill(catalog_raw(topic->dialect, SQL_APPEND_POSITIONS),
                          fill, &topic->positions_text, diag);
    if (status == STATUS_OK)
        topic->positions = db_sql_make(buffer_text(&topic->positions_text),
                                       DB_HOST);
    return status;
}

enum status topic_open(struct topic *topic, const struct topic_kind *kind,
                       const char *dialect, const struct names *names,
                       const struct catalog *catalog, int partitions,
                       struct diag *diag)
{
    enum status status = STATUS_OK;

    assert(partitions > 0 && topic->ntables > 0);
    topic->kind = kind;
    if (!kind->shared)
        topic->name = kind->name;
    topic->dialect = mem_copy_text(dialect, strlen(dialect));
    topic->catalog = catalog;
    topic->partitions = partitions;
    if (!kind->shared) /* else they are drawn with the rows */
        status = fill_positions(topic, names, diag);
    for (size_t t = 0; t < topic->ntables && status == STATUS_OK; t++) {
        struct topic_table *table = &topic->tables[t];

        fill_names(topic, table, names);
        status = topic_statement(topic, t, kind->count, &table->count_text,
                                 &table->count, diag);
        if (status == STATUS_OK)
            status = topic_statement(topic, t, kind->census,
                                     &table->census_text, &table->census, diag);
    }
    return status;
}

void topic_close(struct topic *topic)
{
    while (topic->pages != NULL) {
        struct topic_page_sql *next = topic->pages->next;

        buffer_free(&topic->pages->text);
        mem_free(topic->pages->wanted);
        mem_free(topic->pages);
        topic->pages = next;
    }
    for (size_t t = 0; t < topic->ntables; t++) {
        buffer_free(&topic->tables[t].count_text);
        buffer_free(&topic->tables[t].census_text);
    }
    mem_free(topic->tables);
    buffer_free(&topic->positions_text);
    map_free(&topic->own);
    map_free(&topic->scratch_ids);
    arena_free(&topic->scratch);
    mem_free(topic->dialect);
}
