/*
 * Worker scripts -- which scripts a worker runs: it loads them from what its
 * supervisor has had checked, and switches to others between two batches when
 * it is told to.
 */
#ifndef HOST_RUN_WORKER_SCRIPTS_H
#define HOST_RUN_WORKER_SCRIPTS_H

#include "run/channel.h"
#include "run/reload.h"
#include "run/script_store.h"

/** All zero at first: nothing was ordered. */
struct worker_scripts {
    bool ordered; /* to be done between two batches */
    struct script_place place;
    struct reload_terms terms;
};

/** Appends the bytes of a version, as a start and a switch load them. */
enum status worker_scripts_read(const struct script_place *place,
                                struct buffer *bundle,
                                struct diag *diag) MUST_CHECK;

/** INVALID unless the loaded script is the version that was meant. */
enum status worker_scripts_verify(const struct script *script,
                                  const struct script_place *place,
                                  struct diag *diag) MUST_CHECK;

/** An order has come; it takes the place of one that was not done yet. */
enum status worker_scripts_order(struct worker_scripts *scripts,
                                 const struct channel_message *message,
                                 struct diag *diag) MUST_CHECK;

/** Between two steps of the host: does what was ordered, and answers. Only
 * trouble of the database that passes is an error: the order stays. */
enum status worker_scripts_follow(struct worker_scripts *scripts,
                                  struct application *app, struct host *host,
                                  struct diag *diag) MUST_CHECK;

#endif
