/*
 * Reloader -- which version of the scripts a host runs, and how it comes to
 * another one: somebody saves a file, sends SIGHUP, or runs `moontide reload`;
 * a process checks what lies there (run/script_child.h); one worker switches,
 * between two batches and if the database has nothing against it; then all the
 * others do. Whatever goes wrong before the first has switched leaves
 * everything as it was.
 *
 * Workers load what was checked from memory that is shared with them, never
 * from the disk; so does one that is started again. Everything here belongs to
 * the supervisor's loop.
 */
#ifndef HOST_RUN_RELOADER_H
#define HOST_RUN_RELOADER_H

#include "run/channel.h"
#include "run/script_store.h"

struct reloader; /* run/reloader.c */
struct supervisor;
struct worker_process;

/** Makes its handles in the supervisor's loop. */
enum status reloader_open(struct supervisor *supervisor,
                          struct reloader **reloader,
                          struct diag *diag) MUST_CHECK;
/** Checks the scripts for the first time, and then starts the first worker;
 * scripts that are not good stop the supervisor. */
void reloader_start(struct reloader *reloader);
/** Nothing is reloaded any more; its handles are closed with the loop. May be
 * called twice. */
void reloader_stop(struct reloader *reloader);
/** When the loop has ended. NULL is allowed. */
void reloader_free(struct reloader *reloader);

/** What a worker that is started now loads. */
const struct script_place *reloader_place(const struct reloader *reloader);
/** The descriptor that it reads it from. */
int reloader_fd(const struct reloader *reloader);

/** There are duties: they are to know what runs. */
void reloader_record_start(struct reloader *reloader);

/** A worker runs, answers an order to switch, or has ended. */
void reloader_worker_ready(struct reloader *reloader,
                           struct worker_process *worker);
void reloader_worker_answer(struct reloader *reloader,
                            struct worker_process *worker,
                            const struct channel_message *message);
void reloader_worker_gone(struct reloader *reloader,
                          struct worker_process *worker);

#endif
