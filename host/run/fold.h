/*
 * Fold -- a keyed projection over a list of messages without a database: the
 * pure check of the testing kit. It runs the file of the declaration in a
 * fresh sandboxed state, through the same calls as the host.
 */
#ifndef HOST_RUN_FOLD_H
#define HOST_RUN_FOLD_H

#include "script/script.h"

/** Slices are valid during the call. */
typedef enum status (*fold_fn)(void *arg, struct text key, struct text state,
                               struct diag *diag);

/** Calls `fn` for each read model that is there in the end. The events are
 * what an append would make of them, in one stream where they say nothing else
 * (`expected` is their sequence number), and are folded twice by the same
 * state: FAILED when the second result differs (a handler keeps something in a
 * file-level local), or when a handler fails (names the message). INVALID: an
 * event is not as its type says. USAGE: no such projection. */
enum status fold_messages(const struct script_options *options,
                          const char *projection, struct append_event *events,
                          size_t count, fold_fn fn, void *arg,
                          struct diag *diag) MUST_CHECK;

#endif
