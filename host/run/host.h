/*
 * Host -- runs the declared consumers in this process: moves the high-water
 * mark, polls each consumer, applies page after page. `moontide run` and the
 * testing kit call the same code.
 */
#ifndef HOST_RUN_HOST_H
#define HOST_RUN_HOST_H

#include "run/application.h"

#include <signal.h>

struct host; /* run/host.c */
struct attempt_slot;

/** How this process takes part. No options, or all zero: an instance of its
 * own. */
struct host_options {
    /** The instance that it is, as started by a supervisor; NULL: a new one,
     * which refreshes its own row between steps. */
    const char *instance_id;
    /** Where it says what it applies; may be NULL. */
    struct attempt_slot *slot;
    /** Heartbeats and marks are the supervisor's: marks are only read. */
    bool supervised;
    /** It takes another one's place in a host that runs: what is halted stays
     * so, since a fresh budget is for a start of the host only. */
    bool replaces;
    /** Called between steps, by host_run: waits so many microseconds at most
     * (0: not at all). True, and sooner, when there is something to look at;
     * false, and perhaps sooner, otherwise. NULL: waits for the database, as
     * run/wake.h does. */
    bool (*wait)(void *arg, int64_t us);
    void *wait_arg;
    /** Called between steps, by host_run, with nothing in hand: may change what
     * the host runs (run/reload.h). What it gives is taken as a step's. NULL:
     * nothing is done. */
    enum status (*between)(void *arg, struct host *host, struct diag *diag);
    void *between_arg;
    /** Called by host_run when the database is away and it tries again, with
     * why, and with NULL when it works again: is to tell it, once for all that
     * meet the same. NULL: the host logs it. */
    void (*trouble)(void *arg, const struct diag *why);
    void *trouble_arg;
};

/** The application must have a database, tables and scripts, and outlive the
 * host, and so must what `options` points to. Registers the consumers; a
 * halted one is retried (APPLY_ERROR), unless this is a replacement. */
enum status host_open(struct application *app,
                      const struct host_options *options, struct host **host,
                      struct diag *diag) MUST_CHECK;
/** Saves the checkpoints that are held in memory and gives the leases back;
 * what others hold is waited for, and a connection that is lost opened anew,
 * for half of the stop_timeout at most. */
enum status host_close(struct host *host, struct diag *diag);

struct host_progress {
    int64_t applied; /* messages applied since the host was opened */
    int64_t failed;  /* messages recorded as undelivered, deadlines failed */
    int64_t fired;   /* deadlines of sagas */
    bool idle;       /* nothing was there to apply in the last round */
};

/** One round: the mark, then at most one page of each consumer. Conflicts and
 * lost connections are absorbed with backoff; other database errors end it. */
enum status host_step(struct host *host, struct host_progress *progress,
                      struct diag *diag) MUST_CHECK;

typedef void (*host_progress_fn)(void *arg,
                                 const struct host_progress *progress);

/** Rounds until nothing is left (checkpoints saved) or *stop is set. FAILED
 * when consumers are halted in the end: the message names them. */
enum status host_run_until_idle(struct host *host,
                                const volatile sig_atomic_t *stop,
                                host_progress_fn fn, void *arg,
                                struct diag *diag) MUST_CHECK;

/** Testing kit: rounds until nothing is left. A lost connection is made
 * again; other trouble of the database ends it, a conflict, too. */
enum status host_drain(struct host *host, struct host_progress *progress,
                       struct diag *diag) MUST_CHECK;

/** The trouble of the first consumer that stands still, OK when there is
 * none: a row of its that nobody can read, a table that is gone. It is tried
 * again twice a second. */
enum status host_stuck(const struct host *host, struct diag *diag) MUST_CHECK;
/** Tries such consumers again with the next round, which also looks at what
 * was changed and at undelivered messages. */
void host_retry_stuck(struct host *host);

/** Rounds until *stop is set, with adaptive polling in between. */
enum status host_run(struct host *host, const volatile sig_atomic_t *stop,
                     struct diag *diag) MUST_CHECK;

/** Testing kit: after the next batch its answer is dropped: the host
 * reconnects and reads back what became of it. */
void host_lose_next_answer(struct host *host);
/** Testing kit: forgets the newest batch of every consumer, as if its answer
 * had been lost, and runs on from there. */
void host_forget_last_batch(struct host *host);

#endif
