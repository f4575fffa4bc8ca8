/*
 * Aggregate -- runs commands: loads an aggregate from its latest snapshot and
 * the events after it, lets the declared command decide, and appends what it
 * decided, all in the caller's transaction (design 5, Aggregates).
 *
 * This module never begins, commits or rolls back. `moontide command` gives a
 * command a transaction of its own (run/command_run.c); what runs in one, such
 * as a listener or a saga, calls aggregate_dispatch in it.
 */
#ifndef HOST_MODEL_AGGREGATE_H
#define HOST_MODEL_AGGREGATE_H

#include "base/clock.h"
#include "base/log.h"
#include "model/handler.h"
#include "schema/names.h"
#include "topic/event_store.h"

struct aggregates; /* model/aggregate.c */

/** Everything is borrowed and must outlive the aggregates. */
struct aggregates_options {
    const struct declaration *declarations; /* of aggregates only */
    size_t count;
    struct handler handler;
    const char *dialect;
    const struct names *names;
    const struct catalog *catalog;
    struct event_store *store;
    struct uuid_source *ids;
    const struct clock *clock;
    const struct log *log;
    int64_t payload_limit; /* bytes, limits.payload */
};

enum status aggregates_open(const struct aggregates_options *options,
                            struct aggregates **aggregates,
                            struct diag *diag) MUST_CHECK;
void aggregates_close(struct aggregates *aggregates); /* NULL is allowed */

/** The declaration of that name, or USAGE with the nearest. */
enum status aggregate_find(const struct declaration *declarations, size_t count,
                           struct text name,
                           const struct declaration **declaration,
                           struct diag *diag) MUST_CHECK;

/** USAGE with the nearest, unless the aggregate has that command. */
enum status aggregate_has_command(const struct declaration *declaration,
                                  struct text name,
                                  struct diag *diag) MUST_CHECK;

/** INVALID, unless it may be the id of an aggregate. */
enum status aggregate_check_id(struct text id, struct diag *diag) MUST_CHECK;

/** A command to run. Borrowed for the call. */
struct aggregate_command {
    struct text aggregate; /* type: the declaration's name */
    struct text id;        /* of the aggregate; 1 to 255 characters */
    struct text name;      /* of the command */
    struct text args;      /* JSON; NULL data: {} */
    struct text metadata;  /* a JSON object, or NULL data */
    /** With an id of its own a command is done once: see command_results.h.
     * Without one it is given an id that nobody can repeat. */
    bool has_command_id;
    struct uuid command_id;
    bool has_cause; /* the message that it is dispatched for */
    struct uuid cause;
};

/** One event that a command has made. */
struct aggregate_event {
    struct uuid id;
    struct text aggregate_type, aggregate_id;
    struct text type;
    int revision;
    struct text payload;  /* JSON */
    struct text metadata; /* JSON, or NULL data */
    int64_t occurred_at;
    int64_t sequence;
    int64_t position;
};

/** What became of it. Everything lives until the next dispatch. */
struct aggregate_outcome {
    struct uuid command_id;
    bool repeated; /* it was done before; nothing was written */
    bool rejected;
    struct text reason;  /* rejected: for a person */
    struct text details; /* rejected: JSON, or NULL data */
    const struct aggregate_event *events;
    size_t nevents;
    int64_t version; /* sequence number of its last event; -1: none */
    int64_t loaded; /* events that were read to decide; not of a repeated one */
    int64_t snapshot; /* sequence number that loading began after; -1: none */
};

/**
 * Runs one command in the caller's transaction. OK: *outcome, accepted or
 * rejected, and what is queued has been sent. FAILED: the script's fault,
 * *failure. CONFLICT: another writer was faster, run the transaction again.
 * REFUSED: the id stands for another command. INVALID: a field breaks its rule.
 * USAGE: no such aggregate or command. On anything but OK the caller rolls
 * back, at least to before the call.
 */
enum status aggregate_dispatch(struct aggregates *aggregates, struct db *db,
                               const struct aggregate_command *command,
                               struct aggregate_outcome *outcome,
                               struct failure *failure,
                               struct diag *diag) MUST_CHECK;

#endif
