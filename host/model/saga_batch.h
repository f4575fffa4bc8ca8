/*
 * Saga batch -- the sagas of one transaction: loaded together, each worked on
 * in memory by one unit of work after the other, and saved once, with all that
 * the work has caused.
 *
 * What a unit of work is, is its caller's: an event (model/saga.c), a deadline
 * that is due. A unit that fails leaves nothing behind: not its state, its
 * deadlines, its events or its SQL. Nobody but model/saga*.c includes this.
 *
 * Per transaction: begin, add for each saga id, load; run for each unit in
 * order; finish; and after commit or rollback, end.
 */
#ifndef HOST_MODEL_SAGA_BATCH_H
#define HOST_MODEL_SAGA_BATCH_H

#include "base/log.h"
#include "base/map.h"
#include "consumer/applier.h"
#include "model/effects.h"
#include "model/handler.h"
#include "model/saga_deadline.h"
#include "model/saga_instance.h"
#include "model/saga_step_store.h"
#include "model/sql_unit.h"

struct saga_batch_options {
    const struct declaration *declaration;
    struct handler handler;
    const struct names *names;
    const struct catalog *catalog;
    struct uuid_source *ids;
    const struct clock *clock;
    struct db *db;
    struct effects_options effects;
    int64_t time_limit;    /* microseconds that queued statements may take */
    const struct log *log; /* told what needs an operator */
};

/** One saga of the transaction; its place in the list is its slot. */
struct saga_slot {
    struct saga_instance row; /* as stored; of a new one, what it will be */
    int partition;            /* of its id */
    /* after what has run so far */
    bool present; /* there is an instance */
    bool completed;
    struct text state;         /* JSON, of one that is present */
    bool held;                 /* the handlers hold that state */
    bool dirty;                /* it has to be written */
    struct saga_steps *steps;  /* of an orchestrated saga that is present */
    struct saga_alert *alerts; /* model/saga_flow.c */
};

struct saga_batch {
    struct saga_batch_options options;
    struct saga_instances instances;
    struct saga_step_store steps;
    struct effects *effects;
    struct saga_deadlines *deadlines;
    struct sql_unit sql;

    /* the transaction in hand */
    struct arena arena;
    struct map ids; /* saga id -> slot */
    struct saga_slot *slots;
    size_t nslots, slots_capacity;
    struct buffer json;
};

/** All is borrowed and must outlive the batch. */
void saga_batch_init(struct saga_batch *batch,
                     const struct saga_batch_options *options);
void saga_batch_free(struct saga_batch *batch);

void saga_batch_begin(struct saga_batch *batch);
/** The slot of a saga id, whose bytes must live until the end. */
size_t saga_batch_add(struct saga_batch *batch, struct text saga_id,
                      int partition);
enum status saga_batch_load(struct saga_batch *batch, struct db *db,
                            struct diag *diag) MUST_CHECK;

/** One unit of work on one saga. FAILED with *failure: it is undone. Anything
 * else but OK is the database's. */
typedef enum status (*saga_work_fn)(void *arg, struct saga_batch *batch,
                                    size_t slot, struct failure *failure,
                                    struct diag *diag);
/** Runs it, as applier_ops.apply. */
enum status saga_batch_run(struct saga_batch *batch, struct db *db, size_t slot,
                           saga_work_fn work, void *arg,
                           enum apply_verdict *verdict, struct failure *failure,
                           struct diag *diag) MUST_CHECK;
/** From within a unit of work: calls a function of the script on the slot's
 * state; an instance that is not there comes to be by it. The caller fills in
 * the call's message and attempt, and of `saga` what is called with what. */
enum status saga_batch_call(struct saga_batch *batch, size_t slot,
                            struct handler_call *call,
                            struct handler_saga *saga, struct failure *failure,
                            struct diag *diag) MUST_CHECK;

/** Makes an instance for a slot that has none; from within a unit of work. */
void saga_batch_begin_instance(struct saga_batch *batch, size_t slot);

/** Queues what the units did, and writes what they caused. FAILED with
 * *failure: some unit left what cannot be written. CONFLICT: another has begun
 * the same saga, or written it. */
enum status saga_batch_finish(struct saga_batch *batch, struct db *db,
                              struct failure *failure,
                              struct diag *diag) MUST_CHECK;
/** "script:line" of a queued statement by its tag, or "". */
const char *saga_batch_where(const struct saga_batch *batch, int64_t tag);
void saga_batch_end(struct saga_batch *batch);

#endif
