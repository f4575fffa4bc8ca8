/*
 * Topic -- an ordered log of messages with one position space, as its readers
 * and writers share it: the tables that hold the messages and the statements
 * filled for them. topic/event_store.h and topic/capture.h open one each;
 * topic/event_page.h and topic/event_census.h read any.
 */
#ifndef HOST_TOPIC_TOPIC_H
#define HOST_TOPIC_TOPIC_H

#include <stddef.h>

struct topic; /* topic/topic_parts.h */

/** As consumers, marks and people name it: "event-store". */
const char *topic_name(const struct topic *topic);

#define TOPICS_MAX 4

/** The topics that are open, whoever opened them. */
struct topics {
    struct topic *list[TOPICS_MAX];
    size_t count;
};

/** The topic of that name, NULL when there is none. */
struct topic *topics_find(const struct topics *topics, const char *name);

#endif
