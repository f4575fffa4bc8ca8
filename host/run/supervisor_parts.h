/*
 * Supervisor parts -- what the files behind run/supervisor.h share. Everything
 * here belongs to the loop's thread. Nobody else includes this.
 */
#ifndef HOST_RUN_SUPERVISOR_PARTS_H
#define HOST_RUN_SUPERVISOR_PARTS_H

#include "base/log.h"
#include "run/duties.h"
#include "run/notify_systemd.h"
#include "run/outage.h"
#include "run/reloader.h"
#include "run/supervisor.h"
#include "run/worker_process.h"

#include <uv.h>

struct supervisor {
    const struct supervisor_options *options;
    struct clock clock;
    struct log log;
    uv_loop_t loop;
    uv_signal_t terminate, interrupt;
    uv_timer_t check;    /* looks for workers that hang */
    uv_timer_t deadline; /* of an orderly stop */
    uv_timer_t watchdog;
    struct notify_systemd notify;
    struct reloader *reloader;
    struct duties *duties; /* from the first worker that is ready */
    bool duties_ended;
    struct shared_memory config; /* the configuration file as it was read */
    struct worker_process *workers;
    int nworkers;
    const char **vouched; /* room for the ids of those that live */
    bool started;         /* the first worker has been ready */
    bool stopping;        /* no worker is started any more */
    int signal;           /* that asked for the stop; 0: none */
    int overdue;          /* workers killed as they did not stop in time */
    int crashes;     /* of the first worker in a row, before it was ready */
    struct diag end; /* how the run ends */
    struct outage outage;         /* what workers say of their database */
    char told[DIAG_MESSAGE_SIZE]; /* the newest trouble of a worker */
    int64_t told_at;              /* monotonic */
};

/** A worker runs. */
void supervisor_worker_ready(struct supervisor *supervisor,
                             struct worker_process *worker,
                             const struct channel_message *ready);
/** A worker's process is gone, and all that it has sent is read. */
void supervisor_worker_gone(struct supervisor *supervisor,
                            struct worker_process *worker);

/** A worker's database is away, and it tries again; NULL: it is there. */
void supervisor_worker_trouble(struct supervisor *supervisor,
                               struct worker_process *worker,
                               const struct channel_message *trouble);

/** Begins an orderly stop; `status` and `diag` say why when it is for a
 * trouble (STATUS_OK, NULL: somebody asked). */
void supervisor_stop(struct supervisor *supervisor, const struct diag *diag);

#endif
