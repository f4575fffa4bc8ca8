/*
 * Event store, its parts -- what the files behind topic/append.h share of an
 * open event store. Nothing outside this folder includes it.
 */
#ifndef HOST_TOPIC_EVENT_STORE_PARTS_H
#define HOST_TOPIC_EVENT_STORE_PARTS_H

#include "topic/event_store.h"
#include "topic/topic_parts.h"

/** The statements about the streams of one table. */
struct stream_sql {
    struct buffer text;
    struct db_sql sql; /* tells where they end */
    struct buffer read_text;
    struct db_sql read; /* reads one */
};

struct event_store {
    struct topic topic;
    struct stream_sql *streams; /* by table index */
    struct arena own_names;     /* keys of topic.own */
    struct map scratch_streams; /* of one append call */
};

#endif
