/*
 * Compactor -- when the topics of read models are compacted, at which pace, and
 * what the log is told of it. Deleting is topic/compaction.h.
 *
 * A run goes through all topics, batch by batch. Between two batches it pauses
 * for as long as makes its share of the time a tenth, so that those who apply
 * messages meanwhile hardly notice; what it waited for them is not counted.
 * What it could not do is left to the next run.
 */
#ifndef HOST_RUN_COMPACTOR_H
#define HOST_RUN_COMPACTOR_H

#include "run/application.h"
#include "topic/compaction.h"

struct compactor_swept; /* run/compactor.c */

enum compactor_phase {
    COMPACTOR_RESTS,
    COMPACTOR_BEGINS,
    COMPACTOR_SEEKS, /* the next topic */
    COMPACTOR_DELETES,
    COMPACTOR_SWEEPS,
};

/** Starts as all zero; compactor_free. */
struct compactor {
    enum compactor_phase phase;
    bool begun;      /* due_at holds */
    bool at_once;    /* this run takes no pauses, and spares what is young */
    int64_t due_at;  /* of the caller's clock */
    int64_t run_at;  /* ... when the run began */
    int64_t cost_us; /* of the last step, the time that it took from others */
    size_t messages; /* of a batch */
    struct compaction topic;
    struct compactor_swept *swept; /* by topic, from run to run */
    size_t nswept;
    int64_t superseded, tombstones; /* deleted from the topic in this run */
};

/** When there is something to do, by the clock that `now` is of, which never
 * goes back; INT64_MAX: never, schedule is "none". */
int64_t compactor_due(struct compactor *compactor,
                      const struct application *app, int64_t now);

/** One batch. Only what keeps the connection from being used is an error; all
 * else is told to the log and left to the next run. */
enum status compactor_step(struct compactor *compactor, struct application *app,
                           int64_t now, struct diag *diag) MUST_CHECK;

/** For a process that ends when nothing is left: begins a run without pauses,
 * of what was superseded longer ago than the schedule. It goes on as long as
 * compactor->phase is not COMPACTOR_RESTS. */
void compactor_finish(struct compactor *compactor,
                      const struct application *app);

void compactor_free(struct compactor *compactor);

#endif
