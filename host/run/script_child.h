/*
 * Script child -- the check of saved scripts as the supervisor sees it: a
 * process is started (run/script_check.h), has a limit of time, and its outcome
 * comes in a call. One at a time.
 */
#ifndef HOST_RUN_SCRIPT_CHILD_H
#define HOST_RUN_SCRIPT_CHILD_H

#include "run/channel.h"
#include "run/script_version.h"
#include "run/supervisor.h"

#include <uv.h>

/** `failure` is NULL when all is good; then the version is the receiver's
 * (script_version_free). The bundle is valid during the call. */
typedef void (*script_child_fn)(void *arg, const struct diag *failure,
                                struct script_version *version,
                                struct text bundle);

struct script_child {
    uv_loop_t *loop;
    const struct supervisor_options *options;
    int config; /* the configuration file as the host has read it */
    script_child_fn done;
    void *arg;
    uv_timer_t limit;
    uv_process_t process;
    uv_pipe_t channel;
    int handles; /* of these two that are not closed yet */
    int out;     /* memory that it fills; -1: none */
    struct channel_reader reader;
    bool running;
    bool loaded;         /* it has said so */
    bool failed;         /* it has said why, or was killed: */
    struct diag failure; /* ... for that */
};

void script_child_init(struct script_child *child, uv_loop_t *loop,
                       const struct supervisor_options *options, int config,
                       script_child_fn done, void *arg);
/** Must not run yet. The outcome follows sooner or later, unless it is
 * closed before. */
void script_child_start(struct script_child *child);
/** Ends it, and no outcome follows. Its handles are closed with the loop. */
void script_child_close(struct script_child *child);

#endif
