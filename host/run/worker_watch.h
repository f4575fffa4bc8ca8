/*
 * Worker watch -- judges from a worker's slot, and from what the system says
 * of its process, whether it lives and whether a handler of its hangs. The
 * slot is a stranger's: no value in it is trusted.
 */
#ifndef HOST_RUN_WORKER_WATCH_H
#define HOST_RUN_WORKER_WATCH_H

#include "consumer/attempt_slot.h"

#include <sys/types.h>

enum worker_life {
    LIFE_WELL,
    LIFE_SILENT,  /* it may be stopped: nobody vouches for it */
    LIFE_HANDLER, /* a handler has run past its time: to be ended */
    LIFE_HUNG,    /* silent for too long, in no handler or stopped in one: to
                   * be ended */
};

/** Durations, in microseconds. */
struct worker_watch_limits {
    int64_t handler; /* limits.time */
    int64_t silent;  /* without a tick */
    int64_t hung;    /* ... and it is ended */
};

/** What is kept from look to look. Starts as all zero with each process. */
struct worker_watch {
    int64_t looked_at;             /* monotonic; 0: not yet */
    int64_t moved_at;              /* monotonic: when the slot last changed */
    int64_t ticked_at, started_at; /* what the slot said then */
    int64_t called_at;             /* monotonic: when the call began */
    int64_t excused;               /* time in which that call could not run */
    int64_t stopped;               /* time for which it is stopped by now */
    int64_t cpu; /* ticks that the process had used by the last look */
};

/**
 * To be called often: what happens between two looks is not seen. A process
 * that is stopped, and one that nobody looked at, is not what hangs; one that
 * waits, as for the database, has the time that such a wait may take.
 */
enum worker_life worker_watch_look(struct worker_watch *watch, pid_t pid,
                                   const struct attempt_slot *slot,
                                   const struct worker_watch_limits *limits,
                                   int64_t now);

#endif
