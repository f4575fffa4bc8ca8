/*
 * Saga -- a process manager as an applier: an event, or a deadline that is due,
 * is applied to the saga of its id, whose state, deadlines and effects commit
 * with the checkpoint.
 *
 * An event for a saga that is completed is passed over, and so is one that
 * begins none and finds none, unless the declaration's `unknown` says
 * otherwise. Sagas are never rebuilt: their effects are done.
 */
#ifndef HOST_MODEL_SAGA_H
#define HOST_MODEL_SAGA_H

#include "model/saga_batch.h"

struct saga; /* model/saga.c */

/** All is borrowed and must outlive the saga. */
struct saga *saga_new(const struct saga_batch_options *options);
void saga_free(struct saga *saga); /* NULL is allowed */
struct applier saga_applier(struct saga *saga);

#endif
