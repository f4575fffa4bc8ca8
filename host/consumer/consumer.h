/*
 * Consumer -- one declared consumer at work in this process: what it reads,
 * where it stands, and what applies its messages. One step polls a page
 * (consumer/poll.h) and applies it in one transaction (consumer/apply.h).
 */
#ifndef HOST_CONSUMER_CONSUMER_H
#define HOST_CONSUMER_CONSUMER_H

#include "base/log.h"
#include "consumer/applier.h"
#include "consumer/checkpoint.h"
#include "consumer/skipped.h"
#include "consumer/undelivered.h"
#include "topic/event_page.h"
#include "topic/high_water_mark.h"

/** What all consumers of a process share; borrowed, one thread. */
struct attempt_slot; /* consumer/attempt_slot.h */
struct flight;       /* consumer/flight.h */

struct consumer_env {
    const char *instance; /* whose leases are applied under; NULL: a verb's */
    struct db *db;
    const struct catalog *catalog;
    const struct names *names;
    struct topics topics;
    struct uuid_source *ids;
    const struct clock *clock;
    const struct log *log;
    int partitions;
    size_t batch;              /* messages per transaction at most */
    int64_t time_limit;        /* microseconds a handler call may take */
    size_t batch_bytes;        /* payload bytes per transaction, about */
    struct flight *flight;     /* of the connection */
    struct attempt_slot *slot; /* told whose attempts are made; may be NULL */
};

/** When undelivered messages are looked at. */
struct consumer_retries {
    bool any;           /* there may be undelivered messages */
    bool yields;        /* the last step was theirs: now a page's turn */
    int64_t next_at;    /* consumer_clock: one is due, INT64_MAX: none */
    int64_t looked_at;  /* consumer_time of the last look */
    int64_t not_before; /* consumer_time: looking shall cost little */
    int64_t gathers;    /* consumer_time: until then pages go before it */
    bool doubtful;      /* some were recorded behind what was held before: an
                           operator may have let go of it */
    bool cut;           /* not all that was due was read at once */
    size_t singly;      /* so many are tried one by one */
    int conflicts;      /* in a row */
};

/** When deadlines of a saga are looked at (consumer/fire.h). */
struct consumer_fire {
    int64_t next_at;    /* clock of consumer/deadline.h: one is due; INT64_MAX:
                           none is known; INT64_MIN: look */
    int64_t not_before; /* consumer_time: looking shall cost little */
    int64_t gathers;    /* consumer_time: until then pages go before it */
    bool yields;        /* the last step was theirs: now a page's turn */
    int64_t through; /* messages up to here go first, CHECKPOINT_NONE: what is
                        due was not noticed yet */
    int64_t noticed_at; /* clock_monotonic */
    size_t limit;       /* adapts so that a transaction stays short */
    size_t singly;      /* so many are fired one by one */
    int conflicts;      /* in a row */
    /* so many of what comes first were perhaps in the hand of one that died */
    size_t careful;
    /* the attempt that was counted before it is made: its row, and the count;
     * 0: there is none */
    struct uuid counted;
    int counted_attempts;
};

#define CAREFUL_UNKNOWN INT64_MAX

/** How a partition is read that was taken over from an instance that lapsed,
 * which may have died of what lies there. */
struct careful_partition {
    int64_t through; /* carefully so far; CHECKPOINT_NONE: not at all;
                        CAREFUL_UNKNOWN: how far is not known yet */
    bool counted;    /* what counts a page there is of this process */
};

/** The attempt that was counted before it is made (consumer/careful.h), by the
 * row that says so. */
struct consumer_counted {
    int64_t position; /* 0: there is none */
    int partition;
    struct buffer key;
    bool unresolved;
    bool retried;         /* it is counted in the row of an earlier failure */
    int failures;         /* with this one */
    int64_t page_through; /* or a page was counted, to here; 0: none */

    /* the step in hand */
    int64_t began;              /* clock_monotonic */
    const struct message *next; /* behind the one in hand, NULL: unknown */
    bool rides; /* that one's count is in the transaction under way */
};

/** Fields are for the files of this folder; the host reads counters only. */
struct consumer {
    const struct consumer_env *env;
    struct consumer_name name;
    struct topic *topic;
    const char *source; /* its name */
    struct failure_policy policy;
    struct event_filter filter; /* types and aggregates it wants */
    bool own_key;               /* reads all partitions, keys its own way */
    bool starts_now;    /* a first start begins at the end of the topic */
    bool takes_keyless; /* messages without a key, each by itself */
    struct applier applier;
    /* What the script declares, NULL: nothing to compare (consumer_declare). */
    const struct fingerprint *declared;
    bool rebuild_on_change;
    bool asks_rebuild; /* it was held for a rebuild, which this process does */
    bool takes_over;   /* a start takes another declaration over as it is */
    bool keeps_halt;   /* a start gives no fresh budget: nothing changed */
    bool unchecked;    /* it may have been let run by another declaration */

    struct consumer_row row;
    bool topic_on; /* when it last looked: its read models go to their topic */
    /* The partitions that this process applies, filled by the coordinator.
     * Of the others nothing below says more than when it was read. */
    struct leases leases;
    struct careful_partition *careful_at; /* by partition */
    size_t careful_retries; /* so many of what is due to be tried again, too */
    bool careful_turn;   /* the page in hand is of these, not of the others */
    bool careful_singly; /* one message at a time: two have died there */
    bool careful_told;
    struct consumer_counted counted;
    struct checkpoints stored;  /* as committed */
    struct checkpoints reached; /* stored, or further over empty stretches */
    struct checkpoints before;  /* stored, before the newest batch */
    int64_t saved_at;           /* consumer_time of the last save */
    int64_t replay_through;     /* a rebuild replays so far, or NONE */
    int64_t finish_at;          /* consumer_time: when to look again whether
                                   others have read the replay to its end */
    bool incomplete;            /* went past history that was missing */
    bool passes_gaps;           /* as declared: goes on behind such a gap */
    struct buffer swept;        /* key that the end of a replay has come to */

    /* the batch in hand; memory is reused */
    struct event_page page;
    size_t limit;  /* messages: adapts so that a transaction stays short */
    size_t singly; /* so many are read one by one, each its own commit */
    struct unit *units;
    size_t nunits, units_capacity;
    struct undelivered_entry *entries;
    size_t nentries, entries_capacity;
    struct skip *skipping; /* to be skipped from now on */
    size_t nskipping, skipping_capacity;
    bool met_recorded; /* it came by messages that had rows already */
    struct undelivered_keys held;  /* as committed */
    struct undelivered_keys newly; /* by the batch in hand */
    bool held_known;               /* else `held` must be read again */
    struct skips skips;
    struct arena arena;
    /* why the handler failed whose statement ended the transaction under way;
     * NULL unless one did */
    const struct failure *ended;

    /* the newest batch found nothing skipped, and whether messages are
     * undelivered is known: the next one need not look before it writes */
    bool quiet;
    bool careful; /* the next batch goes unit by unit from the beginning */

    struct consumer_retries retries;
    struct consumer_fire fire;
    int conflicts; /* in a row, of the page in hand */
    int64_t began; /* the batch in hand: when its first handler was called */

    int64_t applied; /* since the opening: messages passed, and retried well */
    int64_t retried; /* position of the last one without keys among these */
    int64_t failed;  /* failures of messages that were recorded */
    int64_t fired;   /* deadlines */
};

static inline bool consumer_runs(const struct consumer *consumer)
{
    return consumer->row.state == CONSUMER_RUNNING;
}

/** What retries are due by, on whatever host they were recorded: the database's
 * clock as it was last asked for, plus the offset; the host's own until then.
 */
int64_t consumer_clock(const struct consumer_env *env);
/** Measures intervals: never goes back, and a test's clock moves it on. */
int64_t consumer_time(const struct consumer_env *env);

/** The applier is borrowed; it and the env must outlive the consumer. */
void consumer_init(struct consumer *consumer, const struct consumer_env *env,
                   const struct consumer_name *name, struct topic *topic,
                   const struct event_filter *filter, bool own_key,
                   const struct failure_policy *policy,
                   const struct applier *applier);
void consumer_free(struct consumer *consumer);

/** What start and reload compare with what is stored, see consumer/declared.h.
 * Borrowed. */
void consumer_declare(struct consumer *consumer,
                      const struct fingerprint *declared,
                      bool rebuild_on_change);

/** Reads state and checkpoints again, after another owner moved them, the
 * leases have changed, or a connection was lost. */
enum status consumer_reload(struct consumer *consumer,
                            struct diag *diag) MUST_CHECK;

/**
 * Whether it may go on by what this process has loaded, where somebody has let
 * it run or rebuilt it since that was last looked at. Statuses as
 * consumer_step, which does the same.
 */
enum status consumer_check(struct consumer *consumer,
                           struct diag *diag) MUST_CHECK;

/**
 * Applies at most one batch up to mark->mark. A consumer that stands below
 * mark->start has missed history: it is halted, or goes on behind the gap and
 * is marked for that. *worked is false when there was
 * nothing to do (or it is paused or halted). CONFLICT and LOST leave it as
 * before the batch: the caller backs off, or reconnects and reloads.
 */
enum status consumer_step(struct consumer *consumer,
                          const struct high_water_mark *mark, bool *worked,
                          struct diag *diag) MUST_CHECK;

/** Shrinks or grows the page after one of `count` messages took so long. */
void consumer_adapt(struct consumer *consumer, size_t count, int64_t took_us);

/** Whether it runs and has something to read below `mark`. */
bool consumer_is_behind(const struct consumer *consumer, int64_t mark);

#endif
