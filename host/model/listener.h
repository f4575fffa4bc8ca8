/*
 * Listener -- an applier for handlers that cause effects: what they do in SQL
 * is done as by an SQL projection (model/sql_projection.h), what they emit and
 * publish is written at the end of the batch, and all of it commits with the
 * checkpoint.
 */
#ifndef HOST_MODEL_LISTENER_H
#define HOST_MODEL_LISTENER_H

#include "consumer/applier.h"
#include "model/effects.h"
#include "model/handler.h"

struct listener; /* model/listener.c */

struct listener_options {
    const struct declaration *declaration;
    struct handler handler;
    struct db *db;
    struct effects_options effects;
    int64_t time_limit; /* microseconds that queued statements may take */
};

/** All is borrowed and must outlive the listener. */
struct listener *listener_new(const struct listener_options *options);
void listener_free(struct listener *listener); /* NULL is allowed */
struct applier listener_applier(struct listener *listener);

#endif
