/*
 * Saga flow -- carries out what the state machine of steps decides
 * (model/saga_steps.h): within a unit of work it tells the machine what has
 * happened, has the script make the messages, stages them, and sets the one
 * deadline that a saga with steps has for them. Part of model/saga_batch.h.
 */
#ifndef HOST_MODEL_SAGA_FLOW_H
#define HOST_MODEL_SAGA_FLOW_H

#include "consumer/deadline.h"
#include "model/saga_batch.h"

/** Name of that deadline; names with this beginning are refused to scripts. */
#define SAGA_FLOW_DEADLINE DEADLINE_OF_HOST "step"

/** Reads the steps of the batch's instances, which are loaded. */
enum status saga_flow_load(struct saga_batch *batch, struct db *db,
                           struct diag *diag) MUST_CHECK;
/** Queues what has changed of them, and tells the log what alarms. */
enum status saga_flow_save(struct saga_batch *batch, struct db *db, int64_t tag,
                           struct diag *diag) MUST_CHECK;

/** A unit of work: one part of an event, for a saga that is there or is begun
 * by it. A repeated answer changes nothing, an answer to a saga that has ended
 * is still taken. FAILED as of saga_batch_call. */
enum status saga_flow_event(struct saga_batch *batch, size_t slot,
                            struct handler_call *call,
                            const struct handler_part *part,
                            struct failure *failure,
                            struct diag *diag) MUST_CHECK;

/** A unit of work: the deadline of a saga that is there is due, or an operator
 * has made it so: `order` is its payload. */
enum status saga_flow_deadline(struct saga_batch *batch, size_t slot,
                               struct handler_call *call, struct text order,
                               struct failure *failure,
                               struct diag *diag) MUST_CHECK;

#endif
