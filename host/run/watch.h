/*
 * Watch -- tells that files in some folders were saved, put there or taken
 * away, a moment after the last of them, so that many changes are one.
 *
 * Folders are watched, not files: editors save by putting another file in the
 * place of the old one. What is only written to and kept open, such as a
 * database, is no change.
 */
#ifndef HOST_RUN_WATCH_H
#define HOST_RUN_WATCH_H

#include "base/status.h"

#include <stdbool.h>
#include <uv.h>

struct watch; /* run/watch.c */

/** Whether a change of this name in a folder matters. An empty name: the
 * folder itself is gone. */
typedef bool (*watch_wanted_fn)(void *arg, const char *folder,
                                const char *name);
typedef void (*watch_changed_fn)(void *arg);

struct watch_options {
    uv_loop_t *loop;
    watch_wanted_fn wanted;
    watch_changed_fn changed;
    void *arg;
};

/** FAILED: the system does not let it watch. */
enum status watch_open(const struct watch_options *options,
                       struct watch **watch, struct diag *diag) MUST_CHECK;

/** These folders from now on. One that is not there, or cannot be watched, is
 * left out. */
void watch_folders(struct watch *watch, const char *const *folders,
                   size_t count);

/** Ends it; its memory is given back by the loop. NULL is allowed. */
void watch_close(struct watch *watch);

#endif
