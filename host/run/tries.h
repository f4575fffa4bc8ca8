/*
 * Tries -- what a verb writes, done again while other writers win or the
 * connection is lost. Of many writers to one stream one wins each time: how
 * often another one loses says nothing, only how long. It sleeps between the
 * tries, so hosts and workers, which have other work meanwhile, use
 * run/backoff.h alone.
 */
#ifndef HOST_RUN_TRIES_H
#define HOST_RUN_TRIES_H

#include "base/status.h"

struct db;

/** One transaction, from its begin to its commit. */
typedef enum status tries_fn(void *arg, struct diag *diag);

/**
 * Calls `once` until it ends otherwise than by CONFLICT or LOST, for at most
 * ten seconds; after LOST the connection is opened anew first. Returns what the
 * last try gave. The outcome of one that ended in LOST is unknown: `once` must
 * find what an earlier try has written.
 */
enum status tries_run(struct db *db, tries_fn *once, void *arg,
                      struct diag *diag) MUST_CHECK;

#endif
