/*
 * Worker process -- one worker as its supervisor sees it: started, spoken to
 * over its channel, killed, reaped. Each start is a new instance.
 */
#ifndef HOST_RUN_WORKER_PROCESS_H
#define HOST_RUN_WORKER_PROCESS_H

#include "base/digest.h"
#include "base/uuid.h"
#include "consumer/charge.h"
#include "run/backoff.h"
#include "run/channel.h"
#include "run/shared_memory.h"
#include "run/worker_watch.h"

#include <stdbool.h>
#include <uv.h>

struct supervisor;

enum worker_phase {
    WORKER_ABSENT,   /* no process; one may be due to be started */
    WORKER_STARTING, /* it has not said that it is ready */
    WORKER_RUNNING,
    WORKER_ENDING, /* told to stop, or killed */
    WORKER_ENDED,  /* reaped; its handles are being closed */
};

struct worker_process {
    struct supervisor *supervisor;
    int number; /* from 1 */
    enum worker_phase phase;
    char instance[UUID_TEXT_LEN + 1]; /* of the newest start */
    char scripts[DIGEST_LEN + 1];     /* the version that it runs */
    bool switching; /* it was told to run another one, and has not answered */
    uv_process_t process;
    uv_pipe_t channel;
    int handles; /* of these that are not closed yet; the process is first */
    struct channel_reader reader;
    struct shared_memory memory; /* where it says what it applies */
    struct worker_watch watch;
    uv_timer_t restart;
    struct backoff backoff;
    int64_t burial_until; /* monotonic: starts by then although the last one's
                             end is not recorded */
    bool ever_ready;
    int64_t ready_at;    /* monotonic; 0: not yet */
    int64_t vouched_at;  /* monotonic: first time after that; 0: not yet */
    bool troubled;       /* it has said that its database is away */
    bool stopped;        /* it has said that it ends in order */
    bool hung;           /* it was killed: a handler ran past its time */
    bool failed;         /* it has said why it ends: */
    struct diag failure; /* ... its own, or what it is killed for */
    int64_t exit_code;
    int exit_signal;
};

void worker_process_init(struct worker_process *worker,
                         struct supervisor *supervisor, int number);
/** Starts it; supervisor_worker_gone follows sooner or later, also when there
 * could be no process. */
void worker_process_start(struct worker_process *worker);
/** Tells it something; a worker that is not there is not told. */
void worker_process_send(struct worker_process *worker, enum channel_type type);
void worker_process_tell(struct worker_process *worker, enum channel_type type,
                         int64_t number, const char *text);
/** Whether there is a process. */
bool worker_process_alive(const struct worker_process *worker);
/** Looks whether it lives, and kills it when it hangs; true when somebody may
 * vouch for it. */
bool worker_process_check(struct worker_process *worker,
                          const struct worker_watch_limits *limits);
/** Somebody vouches for it; the last heartbeat that was written began at
 * `beaten_at`. Once that has been one of its own it need not beat itself. */
void worker_process_vouched(struct worker_process *worker, int64_t beaten_at);
/** SIGKILL. `why` is for the log, NULL when the end needs no word. */
void worker_process_kill(struct worker_process *worker, const char *why);
/** Whether it has come to an end by itself, or as it was told. */
bool worker_process_ended_well(const struct worker_process *worker);
/** What it said in the end of the attempt that it made; false: none. */
bool worker_process_attempt(const struct worker_process *worker,
                            struct attempt *attempt, struct attempt_end *end);
/** How it ended: "was ended by signal 9" and the like. */
void worker_process_how(const struct worker_process *worker, char *out,
                        size_t size);
/** Starts it again after its backoff. */
void worker_process_restart(struct worker_process *worker);
/** Starts it no more; its timer is closed with the loop. */
void worker_process_close(struct worker_process *worker);

#endif
