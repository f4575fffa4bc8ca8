/*
 * Topic -- an ordered log of messages with one position space, as its readers
 * and writers share it: the tables that hold the messages and the statements
 * filled for them. topic/event_store.h and topic/capture.h open one each;
 * topic/event_page.h and topic/event_census.h read any.
 */
#ifndef HOST_TOPIC_TOPIC_H
#define HOST_TOPIC_TOPIC_H

struct topic; /* topic/topic_parts.h */

/** As consumers, marks and people name it: "event-store". */
const char *topic_name(const struct topic *topic);

#endif
