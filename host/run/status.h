/*
 * Status -- what the database tells about topics and consumers, read in one
 * stable view and without a writer's lock: marks, positions, lag, undelivered
 * messages, and what is wrong. `moontide status` and the console show it.
 */
#ifndef HOST_RUN_STATUS_H
#define HOST_RUN_STATUS_H

#include "base/arena.h"
#include "consumer/fingerprint.h"
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
    int64_t count;
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
    int64_t epoch;
    int64_t position; /* everything up to it is done; 0: nothing yet */
    int64_t lag;      /* messages to apply; STATUS_UNKNOWN when undeclared */
    int64_t lag_us;   /* age of the oldest of them; 0 when there is none */
    struct status_undelivered *undelivered;
    size_t nundelivered;
    struct status_failure failure;
    struct status_failure *failed; /* by position; request->consumer only */
    size_t nfailed;                /* at most STATUS_FAILED_LIMIT */
};

/** Memory comes from `arena`; status_report_free. */
struct status_report {
    struct arena arena;
    struct status_topic *topics;
    size_t ntopics;
    struct status_consumer *consumers;
    size_t nconsumers;
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
void status_report_free(struct status_report *report);

#endif
