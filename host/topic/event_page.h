/*
 * Event page -- reads a topic in position order; the event store's across the
 * shared table and the aggregates' own tables.
 */
#ifndef HOST_TOPIC_EVENT_PAGE_H
#define HOST_TOPIC_EVENT_PAGE_H

#include "base/arena.h"
#include "db/db.h"
#include "topic/message.h"
#include "topic/topic.h"

/** What to read; empty lists mean all. Borrowed. */
struct event_filter {
    const struct text *types;
    size_t ntypes;
    const struct text *aggregates; /* aggregate types; event store only */
    size_t naggregates;
    const int64_t *partitions;
    size_t npartitions;
    struct text key; /* NULL data: all */
};

struct event_range {
    int64_t after;     /* exclusive */
    int64_t upto;      /* inclusive: the high-water mark */
    size_t limit;      /* messages */
    size_t byte_limit; /* payload bytes; one message is always read */
};

/** Reused from page to page; owns the bytes of its messages. */
struct event_page {
    struct arena arena;
    struct message *messages;
    size_t count;
    size_t capacity;
    size_t fits; /* messages that the bytes allow, about; 0: not known */
    struct event_range announced; /* what comes along; limit 0: nothing */
    struct event_range fetched;   /* what was read ahead; limit 0: nothing */
    int64_t *ahead_partitions;    /* which these two are of; none: of all */
    size_t nahead_partitions, ahead_capacity;
    /** Every wanted position up to this one is in the page or does not
     * exist: the checkpoint may go here once the page is applied. */
    int64_t through;
    /** All up to it may have been deleted when the page was read, and whoever
     * stands below it has missed something; 0 where nothing is deleted. */
    int64_t start;
};

enum status event_page_read(struct topic *topic, struct db *db,
                            const struct event_filter *filter,
                            const struct event_range *range,
                            struct event_page *page,
                            struct diag *diag) MUST_CHECK;
/** Says that this page will be read after the next commit, see db_announce. The
 * read may then ask for more: it gets what was announced. */
void event_page_announce(struct topic *topic, struct db *db,
                         const struct event_filter *filter,
                         const struct event_range *range,
                         struct event_page *page);
/** Reads what was announced, so that the next event_page_read finds it here;
 * whatever was in the page is gone. When that fails, the next read tells. */
void event_page_fetch(struct topic *topic, struct db *db,
                      const struct event_filter *filter,
                      struct event_page *page);
/** Forgets what was announced or fetched. */
void event_page_forget(struct event_page *page);
void event_page_free(struct event_page *page);

/** Messages (after, upto] that match, for the lag in `status`; counts at most
 * `limit`. */
enum status event_page_count(struct topic *topic, struct db *db,
                             const struct event_filter *filter, int64_t after,
                             int64_t upto, int64_t limit, int64_t *count,
                             struct diag *diag) MUST_CHECK;

#endif
