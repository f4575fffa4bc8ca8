/*
 * Progress -- one line on standard error that is written over as work goes
 * on: how much was done, and how fast. Only on a terminal, and only when talk
 * is wanted; otherwise nothing here writes anything.
 */
#ifndef HOST_CLI_PROGRESS_H
#define HOST_CLI_PROGRESS_H

#include "cli/cli.h"

struct progress {
    FILE *out;        /* NULL: say nothing */
    const char *what; /* "events" */
    int64_t started_us;
    int64_t shown_us;
    bool visible;  /* a line stands on the terminal */
    int64_t first; /* of progress_part: what was done when it was first told */
    bool told;     /* ... and that it was */
};

/** `what` is borrowed. */
void progress_start(struct progress *progress, const struct cli *cli,
                    const char *what);

/** Shows `done`, a few times a second at most. */
void progress_show(struct progress *progress, int64_t done);

/** Shows `done` of `total` as a bar with the time that is left, judged by the
 * pace since progress_start. */
void progress_part(struct progress *progress, int64_t done, int64_t total);

/** Takes the line away, before anything else is written. */
void progress_end(struct progress *progress);

#endif
