/*
 * Supervisor -- `moontide run`: starts worker processes, starts them again
 * when they end, ends those that hang, and stops all of them in order. It runs
 * no script, and its loop never waits for a database.
 */
#ifndef HOST_RUN_SUPERVISOR_H
#define HOST_RUN_SUPERVISOR_H

#include "run/settings.h"

#include <stdbool.h>

struct supervisor_options {
    const struct settings *settings;
    int workers;          /* at least 1 */
    bool quiet;           /* warnings and errors only */
    const char *config;   /* --config, or NULL */
    const char *database; /* --database, or NULL */
};

/**
 * Runs until SIGTERM or SIGINT. OK when every worker has ended in order within
 * stop_timeout, FAILED when one had to be killed. When the first worker cannot
 * start, its status and message. A second signal ends the process at once.
 */
enum status supervisor_run(const struct supervisor_options *options,
                           struct diag *diag) MUST_CHECK;

#endif
