/*
 * Start -- opens what a host runs on, and the host, and goes on trying while
 * another program holds what they need: a writer, a compaction, a host that
 * starts at the same time or stands still. Single statements wait no longer
 * than those of a running host, so a stop is seen between two tries.
 */
#ifndef HOST_RUN_START_H
#define HOST_RUN_START_H

#include "run/application.h"
#include "run/backoff.h"
#include "run/host.h"

#include <signal.h>

/** Of one start; what is not named here starts as zero. */
struct start {
    const volatile sig_atomic_t *stop; /* ends the waiting */
    /** Waits so many microseconds at most, as in host_options; NULL: sleeps. */
    bool (*wait)(void *arg, int64_t us);
    void *wait_arg;
    int64_t began; /* monotonic; 0: not yet */
    bool told;
    bool lost; /* a connection */
    struct backoff backoff;
};

/**
 * application_load and application_reach, the latter again and again for
 * application_patience; that is told once in the application's log. STOPPED
 * when *stop was set while it waited; else as of these, after as long as they
 * may take CONFLICT, BUSY, LOST, or UNAVAILABLE behind that. application_close
 * is owed on OK only.
 */
enum status start_application(struct start *start,
                              const struct settings *settings, unsigned needs,
                              struct text bundle, struct application *app,
                              struct diag *diag) MUST_CHECK;
/** The same with host_open, on what is left of that time. */
enum status start_host(struct start *start, struct application *app,
                       const struct host_options *options, struct host **host,
                       struct diag *diag) MUST_CHECK;

#endif
