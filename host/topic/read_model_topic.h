/*
 * Read-model topic -- the states of a projection's read models, one message per
 * apply, as other consumers read them: `read-model:<projection>`. All of them
 * share one table. Written through topic/read_model_append.h, switched on by
 * topic/read_model_switch.h, read as any topic is (topic/event_page.h): the key
 * is the read model's, the type READ_MODEL_CHANGED or READ_MODEL_DELETED, the
 * payload its state.
 */
#ifndef HOST_TOPIC_READ_MODEL_TOPIC_H
#define HOST_TOPIC_READ_MODEL_TOPIC_H

#include "db/catalog.h"
#include "schema/names.h"
#include "topic/topic.h"

struct read_model_topics; /* topic/read_model_topic.c */

/** The projection whose topic has that name, a part of it; NULL: it is another
 * kind of topic. */
const char *read_model_topic_projection(const char *topic);

/** Catalog and names are borrowed. */
struct read_model_topics *read_model_topics_new(const char *dialect,
                                                const struct names *names,
                                                const struct catalog *catalog,
                                                int partitions);
/** NULL is allowed. */
void read_model_topics_free(struct read_model_topics *topics);

/** Opens the topic of that name when it is first asked for; it lives as long as
 * `topics`. NULL: that is no name of such a topic. */
struct topic *read_model_topics_find(struct read_model_topics *topics,
                                     const char *name);

#endif
