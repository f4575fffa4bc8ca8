/*
 * Effects -- what the handlers of listeners and sagas cause besides SQL:
 * captured events and messages to publish, kept until the batch ends and
 * written together in the processing transaction, with an undo for the call
 * that failed; and commands to aggregates, which run at once in that
 * transaction. The script layer calls the first group, the models the second.
 */
#ifndef HOST_MODEL_EFFECTS_H
#define HOST_MODEL_EFFECTS_H

#include "base/clock.h"
#include "model/aggregate.h"
#include "model/outgoing.h"
#include "topic/capture.h"

struct effects; /* model/effects.c */

struct effects_options {
    struct capture *capture;
    struct uuid_source *ids;
    const struct clock *clock;
    int64_t payload_limit; /* bytes, limits.payload */
    bool notify;           /* see struct append_options */
    struct aggregates_options aggregates;
    struct outgoing_stage outgoing;
    struct db *db;
};

/** Keeps a copy of an event of the running call. INVALID: a field breaks its
 * rule (topic/capture.h). */
enum status effects_emit(struct effects *effects,
                         const struct append_event *event,
                         struct diag *diag) MUST_CHECK;

/** Keeps a copy of a message of the running call. Without an id of its own it
 * gets one, and without a time the host's. LIMIT: a field breaks its rule. */
enum status effects_publish(struct effects *effects,
                            const struct outgoing *message,
                            struct diag *diag) MUST_CHECK;

/** As aggregate_dispatch, in the transaction of the running call. */
enum status effects_dispatch(struct effects *effects,
                             const struct aggregate_command *command,
                             struct aggregate_outcome *outcome,
                             struct failure *failure,
                             struct diag *diag) MUST_CHECK;

/** The host's clock, microseconds. */
int64_t effects_now(const struct effects *effects);

/** All is borrowed and must outlive the effects. */
struct effects *effects_new(const struct effects_options *options);
void effects_free(struct effects *effects); /* NULL is allowed */
void effects_batch_begin(struct effects *effects);
/** Starts a call; what it causes can be undone until the next one. */
void effects_call_begin(struct effects *effects);
void effects_call_undo(struct effects *effects);

/** How much the running call has caused so far. */
struct effects_mark {
    size_t events;
    size_t messages;
};
struct effects_mark effects_mark(const struct effects *effects);
/** Forgets what was caused since, in the same call. */
void effects_undo_to(struct effects *effects, struct effects_mark mark);
/** What the call has emitted, to be checked and completed. */
struct append_event *effects_call_events(struct effects *effects,
                                         size_t *count);
/** Whether there is anything to write. */
bool effects_any(const struct effects *effects);
/** Writes everything. FAILED with *failure: some call's event or message is
 * refused; anything else is the database's. */
enum status effects_send(struct effects *effects, struct db *db,
                         struct failure *failure, struct diag *diag) MUST_CHECK;

#endif
