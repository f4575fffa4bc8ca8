/*
 * Projection -- a keyed projection as an applier: the states of a batch's
 * keys are read in bulk, folded in memory by the handlers, and written in
 * bulk; of a key only the last state of the batch is written.
 *
 * What is written: the query table (conditional on the message_id that was
 * read) and, for read models that come or go, their row in READ_MODEL_EPOCHS.
 */
#ifndef HOST_MODEL_PROJECTION_H
#define HOST_MODEL_PROJECTION_H

#include "base/clock.h"
#include "consumer/applier.h"
#include "model/handler.h"
#include "schema/names.h"

struct projection; /* model/projection.c */

struct projection_options {
    const struct declaration *declaration;
    struct handler handler;
    const struct names *names;
    const struct catalog *catalog;
    struct uuid_source *ids;
    const struct clock *clock;
    struct db *db;
    int partitions;
    int cascade; /* limits.cascade: applies of a chain that one event starts */
    bool notify; /* tell hosts that wait of what goes to its topic */
};

/** Everything in `options` is borrowed and must outlive the projection. */
struct projection *projection_new(const struct projection_options *options);
void projection_free(struct projection *projection); /* NULL is allowed */
struct applier projection_applier(struct projection *projection);

#endif
