#include "topic/read_model_topic.h"

#include "base/memory.h"
#include "topic/topic_parts.h"

struct read_model_topic {
    struct topic topic;
    struct read_model_topic *next;
    char name[]; /* the label is the end of it */
};

struct read_model_topics {
    char *dialect;
    const struct names *names;
    const struct catalog *catalog;
    int partitions;
    struct read_model_topic *first;
};

/* Its rows are written by read_model_append.c. */
static const struct topic_kind read_model_kind = {
    .name = TOPIC_READ_MODEL,
    .table = TABLE_READ_MODEL_RECORDS,
    .positions = TABLE_READ_MODEL_POSITIONS,
    .shared = true,
    .page = SQL_READ_MODEL_PAGE,
    .page_key = SQL_READ_MODEL_PAGE_KEY,
    .count = SQL_READ_MODEL_COUNT,
    .census = SQL_READ_MODEL_CENSUS,
};

const char *read_model_topic_projection(const char *topic)
{
    const size_t len = strlen(TOPIC_READ_MODEL);

    return strncmp(topic, TOPIC_READ_MODEL, len) == 0 && topic[len] != '\0'
               ? topic + len
               : NULL;
}

struct read_model_topics *read_model_topics_new(const char *dialect,
                                                const struct names *names,
                                                const struct catalog *catalog,
                                                int partitions)
{
    struct read_model_topics *topics = mem_alloc(sizeof(*topics));

    *topics = (struct read_model_topics){
        .dialect = mem_copy_text(dialect, strlen(dialect)),
        .names = names,
        .catalog = catalog,
        .partitions = partitions,
    };
    return topics;
}

static void topic_free(struct read_model_topic *topic)
{
    topic_close(&topic->topic);
    mem_free(topic);
}

void read_model_topics_free(struct read_model_topics *topics)
{
    if (topics == NULL)
        return;
    while (topics->first != NULL) {
        struct read_model_topic *next = topics->first->next;

        topic_free(topics->first);
        topics->first = next;
    }
    mem_free(topics->dialect);
    mem_free(topics);
}

/* The statements are the program's own and the names were checked, so filling
 * them fails only for a name that no table may have. */
static struct topic *open_topic(struct read_model_topics *topics,
                                const char *name)
{
    size_t size = strlen(name) + 1;
    struct read_model_topic *topic = mem_alloc(sizeof(*topic) + size);

    memcpy(topic->name, name, size);
    topic->topic.name = topic->name;
    topic->topic.label = read_model_topic_projection(topic->name);
    topic_add_tables(&topic->topic, &read_model_kind, topics->names, 1);
    if (topic_open(&topic->topic, &read_model_kind, topics->dialect,
                   topics->names, topics->catalog, topics->partitions,
                   NULL) != STATUS_OK) {
        topic_free(topic);
        return NULL;
    }
    topic->next = topics->first;
    topics->first = topic;
    return &topic->topic;
}

struct topic *read_model_topics_find(struct read_model_topics *topics,
                                     const char *name)
{
    if (read_model_topic_projection(name) == NULL)
        return NULL;
    for (struct read_model_topic *t = topics->first; t != NULL; t = t->next)
        if (strcmp(t->name, name) == 0)
            return &t->topic;
    return open_topic(topics, name);
}
