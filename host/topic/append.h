/*
 * Append -- writes events inside the caller's transaction and gives each its
 * id, sequence number, partition and position (design 2, Event store).
 */
#ifndef HOST_TOPIC_APPEND_H
#define HOST_TOPIC_APPEND_H

#include "base/uuid.h"
#include "db/db.h"
#include "topic/event_store.h"

enum append_expect { APPEND_ANY, APPEND_NONE, APPEND_AT };

/** One event to write. Slices are borrowed for the call. Aggregate and
 * expectation are the event store's; the key is the capture topic's, see
 * topic/capture.h. */
struct append_event {
    struct text aggregate_type; /* 1 to 255 characters, no NUL */
    struct text aggregate_id;   /* 1 to 255 characters, no NUL */
    struct text key;            /* the same, or NULL data */
    struct text type;           /* 1 to 255 characters, no NUL */
    struct text payload;        /* any JSON value */
    struct text metadata;       /* a JSON object, or NULL data */
    bool checked;               /* both passed json_check already */
    int revision;               /* 0 unless given */
    bool has_revision; /* else the script's newest, where it says one */
    bool has_id;
    struct uuid id; /* a UUIDv7 is made when the writer brought none */
    bool has_occurred_at;
    int64_t occurred_at;
    /** Judged against the stream as it stands before this event, earlier
     * events of the same call included. APPEND_NONE: it has no event yet. */
    enum append_expect expect;
    int64_t expected; /* APPEND_AT: sequence number of its last event */
};

struct append_result {
    struct uuid id;
    int64_t sequence;
    int64_t position;
    bool repeated; /* was there already, with the same content */
};

struct append_options {
    struct uuid_source *ids;
    int64_t now_us;
    int64_t payload_limit; /* bytes, limits.payload */
    bool notify;           /* tell hosts that wait, topic/notify.h */
};

/**
 * Writes `count` events. Set-based: the number of round trips depends on how
 * many aggregate types there are, not on `count`.
 * INVALID: a field breaks its rule (too long, NUL, not JSON: with offset).
 * REFUSED: expected sequence differs (message has both numbers), an id is
 * there with other content, or the topic ends below its high-water mark.
 * CONFLICT: lost a race.
 * On failure *bad is the index of the event at fault (count: none), and the
 * caller rolls back.
 */
enum status append_events(struct event_store *store, struct db *db,
                          const struct append_options *options,
                          const struct append_event *events, size_t count,
                          struct append_result *results, size_t *bad,
                          struct diag *diag) MUST_CHECK;

/** The checks of one event that need no database. */
enum status append_check(const struct append_event *event,
                         int64_t payload_limit, struct diag *diag) MUST_CHECK;

#endif
