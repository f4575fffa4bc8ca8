/*
 * Topic -- an ordered log of messages with one position space, as its readers
 * and writers share it: the tables that hold the messages and the statements
 * filled for them. topic/event_store.h and topic/capture.h open one each,
 * topic/read_model_topic.h one for each projection that is asked for;
 * topic/event_page.h and topic/event_census.h read any.
 */
#ifndef HOST_TOPIC_TOPIC_H
#define HOST_TOPIC_TOPIC_H

#include <stddef.h>

struct topic; /* topic/topic_parts.h */

/** As consumers, marks and people name it: "event-store". */
const char *topic_name(const struct topic *topic);

#define TOPICS_MAX 2

struct read_model_topics; /* topic/read_model_topic.h */

/** The topics that are open, whoever opened them. */
struct topics {
    struct topic *list[TOPICS_MAX];
    size_t count;
    struct read_model_topics *read_models; /* NULL: there are none */
};

/** The topic of that name, NULL when there is none. One of read models is
 * opened when it is first asked for, whether it is on or not. */
struct topic *topics_find(const struct topics *topics, const char *name);

#endif
