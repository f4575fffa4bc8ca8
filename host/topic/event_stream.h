/*
 * Event stream -- reads the events of one aggregate in the order of their
 * sequence numbers, as the caller's transaction sees them: its own among them,
 * and those behind the high-water mark.
 */
#ifndef HOST_TOPIC_EVENT_STREAM_H
#define HOST_TOPIC_EVENT_STREAM_H

#include "base/arena.h"
#include "db/db.h"
#include "topic/event_store.h"
#include "topic/message.h"

/** Reads from sequence number `from` on, at most `limit`. The messages and
 * their texts live in `arena`. */
enum status event_stream_read(struct event_store *store, struct db *db,
                              struct text aggregate_type,
                              struct text aggregate_id, int64_t from,
                              size_t limit, struct arena *arena,
                              struct message **messages, size_t *count,
                              struct diag *diag) MUST_CHECK;

#endif
