/*
 * Status -- what the database tells about topics and consumers, read in one
 * stable view and without a writer's lock: marks, positions, lag, undelivered
 * messages, and what is wrong. `moontide status` and the console show it.
 */
#ifndef HOST_RUN_STATUS_H
#define HOST_RUN_STATUS_H

#include "base/arena.h"
#include "consumer/fingerprint.h"
#include "outbox/outbox_list.h"
#include "run/application.h"

/** Lag is counted up to here; more is shown as "at least". */
#define STATUS_LAG_LIMIT INT64_C(1000000)

#define STATUS_UNKNOWN INT64_C(-1) /* a number that cannot be told */

struct status_topic {
    const char *name;
    int64_t mark;
    int64_t end;
    int64_t start;
    const char *blocked; /* who keeps the mark below the end; NULL: nobody */
};

struct status_undelivered {
    const char *status; /* FAILED, WAITING, HALTED ... */
    int64_t count;      /* messages */
    int64_t failed;     /* of them, those that failed themselves */
    int64_t oldest_at;  /* when the oldest was recorded */
};

/** So many failed messages are listed, when one consumer is asked for. */
#define STATUS_FAILED_LIMIT 20

struct status_failure {
    int64_t position; /* 0: there is none */
    const char *key;
    const char *type; /* of the message; "" in the newest failure */
    const char *status;
    int64_t count;       /* attempts that failed */
    const char *reason;  /* class, message, script and line */
    int64_t recorded_at; /* 0 in the list */
};

/** One instance that holds partitions of a consumer. */
struct status_owner {
    const char *instance;
    const char *host; /* "" when it is not known */
    bool live;        /* else it has lapsed, and others will take over */
    int64_t *partitions;
    size_t npartitions;
};

struct status_consumer {
    const char *type;
    const char *name;
    const char *source;
    bool declared;           /* by the scripts that were loaded */
    bool registered;         /* has a row */
    const char *state;       /* RUNNING, PAUSED, HALTED, REBUILDING, NEW */
    const char *halt_reason; /* "" unless HALTED */
    int64_t state_since;
    /* The declaration beside what is stored; EQUAL unless there is both. */
    struct fingerprint_change change;
    bool rebuild_on_change;
    bool rebuildable;   /* false: an SQL projection without a reset */
    const char *tables; /* file of an SQL projection's tables, or NULL */
    struct status_owner *owners;
    size_t nowners;
    const char *table_problem; /* a sentence; NULL: none is known */
    int64_t sagas;             /* under way, of one that no script declares */
    int64_t epoch;
    int64_t position; /* everything up to it is done; 0: nothing yet */
    int64_t lag;      /* messages to apply; STATUS_UNKNOWN when undeclared */
    int64_t lag_us;   /* age of the oldest of them; 0 when there is none */
    int64_t replay_through;     /* a rebuild replays so far; 0: none does */
    int64_t incomplete_through; /* history was missing up to here; 0: none */
    struct status_undelivered *undelivered;
    size_t nundelivered;
    bool retry_at_once;         /* a FAILED one is due */
    int64_t next_retry_at;      /* of those that are due later; 0: none is */
    bool unresolved;            /* there are messages whose keys are unknown */
    int64_t blocking;           /* those of them that hold partitions ... */
    int64_t blocked_partitions; /* ... which are so many */
    int64_t blocked_by;         /* position of the first; 0: none ... */
    const char *blocked_reason; /* ... and why that one is; "" */
    /* Only beside an earlier report, else STATUS_UNKNOWN and 0. */
    double rate;     /* messages a second since then */
    int64_t left_us; /* until the replay is over, at that pace */
    int64_t rising;  /* looks in a row that found more lag than before */
    int64_t still;   /* looks in a row that found it where it was, with lag */
    int64_t rising_lag, rising_us; /* lag when that began, and since when */
    struct status_failure failure;
    struct status_failure *failed; /* by position; request->consumer only */
    size_t nfailed;                /* at most STATUS_FAILED_LIMIT */
};

/** The deadlines of one saga type. */
/** One deadline that could not be fired. */
struct status_deadline_failure {
    const char *saga; /* its id; NULL: there is no such deadline */
    const char *name;
    const char *status;
    const char *reason;
    int64_t attempts;
    int64_t next_at; /* when it is tried again; 0: never */
};

struct status_deadlines {
    const char *type;
    int64_t count;
    int64_t failed;     /* they are tried again */
    int64_t dead;       /* they wait for an operator */
    int64_t dead_host;  /* of these: the host's own */
    int64_t overdue;    /* should have fired by now */
    int64_t overdue_at; /* since when; 0: none */
    int64_t next_at;    /* when the next one is due; 0: none is */
    /* the last of those that lie dead, and of those that are tried again */
    struct status_deadline_failure last_dead, last_failed;
};

/** How far the topic of a projection's read models is compacted. */
struct status_compaction {
    const char *topic;
    int64_t through; /* -1: it never was */
    int64_t mark;
    int64_t waiting_since; /* age of the first message behind; 0: none is */
    /* With an age set for tombstones: the consumer that keeps those behind its
     * position; NULL: none does. */
    const char *holder_type, *holder;
    int64_t holder_position;
};

/** A host that runs, and its scripts. */
struct status_script {
    const char *host_id;
    const char *host;    /* name of its machine */
    const char *version; /* that it runs */
    int64_t since;
    const char *changes; /* what it changed */
    bool runs;
    int64_t refused_at; /* saved scripts, after that; 0: none were */
    const char *error;  /* why */
};

/** Steps of orchestrated sagas that need an operator's eye. */
struct status_saga {
    const char *type;
    const char *state; /* OVERDUE, STUCK */
    int64_t count;
    const char *example; /* id of one of the sagas */
};

/** Memory comes from `arena`; status_report_free. */
struct status_report {
    struct arena arena;
    int64_t now_us;   /* the host's clock */
    int64_t taken_us; /* clock_monotonic */
    struct status_topic *topics;
    size_t ntopics;
    const char *burden; /* of the database by others; NULL: none is */
    struct status_consumer *consumers;
    size_t nconsumers;
    struct status_compaction *compactions; /* by topic */
    size_t ncompactions;
    struct status_script *scripts; /* by host */
    size_t nscripts;
    struct status_deadlines *deadlines;
    size_t ndeadlines;
    int64_t deadline_us;            /* the clock that they are judged by */
    struct outbox_pending *pending; /* messages that are staged, by publisher */
    size_t npending;
    struct status_saga *sagas;
    size_t nsagas;
    const char **problems; /* sentences, the worst first */
    size_t nproblems;
    const char **notes; /* sentences about what is not wrong */
    size_t nnotes;
};

struct status_request {
    /* What is declared; NULL: the scripts could not be loaded. */
    const struct declaration *declarations;
    size_t ndeclarations;
    /* Why they could not, or NULL. */
    const char *script_error;
    const char *consumer; /* only this one, or NULL */
    /* An earlier report of the same request: what moved since then is told as
     * a rate. NULL: nobody looked before. */
    const struct status_report *before;
};

/** `app` has a database. USAGE: no consumer has that name (with the nearest);
 * otherwise what the database says. On failure nothing is owed. */
enum status status_read(struct application *app,
                        const struct status_request *request,
                        struct status_report *report,
                        struct diag *diag) MUST_CHECK;
/** Checkpoints of one consumer by partition, 0 where nothing was read yet;
 * `positions` has `count` places. All 0 when it was never run. In the
 * caller's transaction. */
enum status status_positions(struct application *app,
                             const struct declaration *declaration,
                             int64_t *positions, size_t count,
                             struct diag *diag) MUST_CHECK;
/** How far a replay has come, by position; 100 when none is under way. */
int64_t status_replay_percent(const struct status_consumer *consumer);
void status_report_free(struct status_report *report);

#endif
