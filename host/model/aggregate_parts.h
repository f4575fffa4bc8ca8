/*
 * Aggregate, its parts -- one dispatch as the files of model/aggregate.c see
 * it. Nothing outside of them includes it.
 */
#ifndef HOST_MODEL_AGGREGATE_PARTS_H
#define HOST_MODEL_AGGREGATE_PARTS_H

#include "base/buffer.h"
#include "model/aggregate.h"
#include "model/snapshot.h"

#define AGGREGATE_SLOT 0 /* one aggregate at a time */

struct aggregates {
    struct aggregates_options options;
    struct snapshots *snapshots;
    struct arena arena; /* of one dispatch */
    struct arena page;  /* of one page of a stream */
    struct buffer json;
};

/* One command while it runs. */
struct dispatch {
    struct aggregates *aggregates;
    struct db *db;
    const struct declaration *declaration;
    const struct aggregate_command *command;
    struct uuid id;
    int64_t now_us;
    int64_t last; /* sequence number of the stream's last event, -1: none */
    struct snapshot snapshot; /* to be kept, when found */
    struct aggregate_outcome *outcome;
    struct failure *failure;
};

/** aggregate_load.c: fills the slot with the aggregate's state, and the
 * dispatch with where its stream ends. */
enum status aggregate_load(struct dispatch *d, struct diag *diag) MUST_CHECK;

/** Takes a snapshot of what was loaded, once enough was: before the command
 * runs, so that what it does to the state is in none. */
enum status aggregate_take_snapshot(struct dispatch *d) MUST_CHECK;

/** Queues it: behind the append, whose refusal says who was faster, while that
 * of a snapshot would say nothing. */
enum status aggregate_keep_snapshot(struct dispatch *d,
                                    struct diag *diag) MUST_CHECK;

/** Folds one event into the slot. */
enum status aggregate_apply(struct dispatch *d,
                            const struct message *message) MUST_CHECK;

/** Whether the stream has gone on since it was loaded. */
enum status aggregate_moved(struct dispatch *d, bool *moved,
                            struct diag *diag) MUST_CHECK;

/** What stands for the command where no event does, and the call for it or for
 * an event. */
struct message aggregate_command_message(const struct dispatch *d);
struct handler_call aggregate_call_of(const struct dispatch *d,
                                      const struct message *message);

/** aggregate_result.c: looks for a result under the command's id, and fills the
 * outcome from it. */
enum status aggregate_result_find(struct dispatch *d, bool *done,
                                  struct diag *diag) MUST_CHECK;

/** Queues the outcome under the command's id. */
enum status aggregate_result_keep(struct dispatch *d,
                                  struct diag *diag) MUST_CHECK;

#endif
