/*
 * Worker -- one worker process, as its supervisor has started it: opens the
 * application, runs the host in it, and says over the channel how it gets on.
 * It ends when it is told to, and at once when the supervisor is gone.
 */
#ifndef HOST_RUN_WORKER_H
#define HOST_RUN_WORKER_H

#include "run/settings.h"

#include <stdbool.h>
#include <sys/types.h>

/* What a worker finds open. */
#define WORKER_CHANNEL_FD 3 /* its side of the channel */
#define WORKER_SLOT_FD    4 /* where it says what it applies */
#define WORKER_SCRIPTS_FD 6 /* where it reads its scripts from */
#define WORKER_CONFIG_FD  7 /* its configuration file; a device: none */

struct worker_options {
    const struct settings *settings;
    const char *instance_id;
    pid_t supervisor;    /* whoever started it */
    const char *scripts; /* where they lie: script_place_write */
    bool quiet;          /* warnings and errors only */
    bool replaces;       /* another one has died, or the host runs already */
};

/** Call first: from now on this process ends with its supervisor, and has
 * nothing open but what is meant for it. USAGE when no supervisor started it.
 */
enum status worker_attach(pid_t supervisor, struct diag *diag) MUST_CHECK;

/** Loads the configuration as the supervisor has read it: the file may have
 * changed since, and all processes of a host have the same. */
enum status worker_settings(const char *path, struct settings *settings,
                            struct diag *diag) MUST_CHECK;

/** Runs to the end, and has told the supervisor how it ended. */
enum status worker_run(const struct worker_options *options,
                       struct diag *diag) MUST_CHECK;

/** For what goes wrong before: tells the supervisor. */
void worker_tell_failure(const struct diag *diag);

#endif
