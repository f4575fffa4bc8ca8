#include "model/aggregate_parts.h"

#include "model/snapshot.h"
#include "topic/event_stream.h"

#include <inttypes.h>

#define PAGE_EVENTS 500 /* read at once */

struct handler_call aggregate_call_of(const struct dispatch *d,
                                      const struct message *message)
{
    return (struct handler_call){
        .declaration = d->declaration,
        .message = message,
        .key = d->command->id,
        .attempt = 1,
    };
}

/* What stands for the command where no event does. */
struct message aggregate_command_message(const struct dispatch *d)
{
    return (struct message){
        .id = d->id,
        .key = d->command->id,
        .type = d->command->name,
        .occurred_at = d->now_us,
        .aggregate_type = text_of(d->declaration->name),
        .aggregate_id = d->command->id,
        .sequence = MESSAGE_NO_SEQUENCE,
    };
}

static struct snapshot_of snapshot_of(const struct dispatch *d)
{
    return (struct snapshot_of){
        .aggregate_type = text_of(d->declaration->name),
        .aggregate_id = d->command->id,
        .version = d->declaration->snapshot_version,
    };
}

static void tell_snapshot(const struct dispatch *d,
                          const struct snapshot *snapshot, const char *why)
{
    const struct log_about about = {.consumer = d->declaration->name};

    log_write(d->aggregates->options.log, LOG_WARN, &about,
              "the snapshot of %.*s at sequence number %" PRId64
              " is not used: %s; all events are read instead",
              TEXT_ARGS(d->command->id), snapshot->sequence, why);
}

/* Fills the slot from the latest snapshot. *snapshot says whether there is one
 * that can be used. */
static enum status begin_with_snapshot(struct dispatch *d,
                                       struct snapshot *snapshot,
                                       struct diag *diag)
{
    struct aggregates *a = d->aggregates;
    const struct handler *handler = &a->options.handler;
    const struct message message = aggregate_command_message(d);
    const struct handler_call call = aggregate_call_of(d, &message);
    const struct snapshot_of of = snapshot_of(d);
    struct failure failure;
    enum status status;

    *snapshot = (struct snapshot){.found = false};
    if (d->declaration->snapshot_every == 0)
        return STATUS_OK;
    status = snapshot_read(a->snapshots, d->db, &of, &a->arena, snapshot, diag);
    if (status != STATUS_OK || !snapshot->found)
        return status;
    status = handler->ops->state_decode(handler->code, &call, AGGREGATE_SLOT,
                                        snapshot->state, &failure);
    if (status != STATUS_FAILED)
        return status;
    tell_snapshot(d, snapshot, failure.reason);
    snapshot->found = false;
    return STATUS_OK;
}

static enum status begin_anew(struct dispatch *d)
{
    const struct handler *handler = &d->aggregates->options.handler;
    const struct message message = aggregate_command_message(d);
    const struct handler_call call = aggregate_call_of(d, &message);

    d->last = -1;
    return handler->ops->state_initial(handler->code, &call, AGGREGATE_SLOT,
                                       d->failure);
}

enum status aggregate_apply(struct dispatch *d, const struct message *message)
{
    const struct handler *handler = &d->aggregates->options.handler;
    const struct handler_call call = aggregate_call_of(d, message);

    return handler->ops->apply_event(handler->code, &call, AGGREGATE_SLOT,
                                     d->failure);
}

static enum status read_page(struct dispatch *d, int64_t from,
                             struct message **messages, size_t *count,
                             struct diag *diag)
{
    struct aggregates *a = d->aggregates;

    arena_reset(&a->page);
    return event_stream_read(
        a->options.store, d->db, text_of(d->declaration->name), d->command->id,
        from, PAGE_EVENTS, &a->page, messages, count, diag);
}

/* Applies what the stream has from sequence number `from` on. */
static enum status apply_stream(struct dispatch *d, int64_t from,
                                const struct snapshot *snapshot, bool *ahead,
                                struct diag *diag)
{
    struct message *messages;
    size_t count;

    *ahead = false;
    do {
        enum status status = read_page(d, from, &messages, &count, diag);

        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < count; i++) {
            if (snapshot->found && messages[i].sequence == snapshot->sequence) {
                d->last = snapshot->sequence;
                continue; /* the state has it */
            }
            if (snapshot->found && d->last < 0)
                break;
            status = aggregate_apply(d, &messages[i]);
            if (status != STATUS_OK)
                return status;
            d->last = messages[i].sequence;
            d->outcome->loaded++;
        }
        /* the event of a snapshot must be there, or it is of no state that
         * this stream has had */
        *ahead = snapshot->found && d->last < 0;
        from = d->last + 1;
    } while (count == PAGE_EVENTS && !*ahead);
    return STATUS_OK;
}

/* Fills the slot with the aggregate's state. */
enum status aggregate_load(struct dispatch *d, struct diag *diag)
{
    struct snapshot snapshot;
    bool ahead = false;
    enum status status = begin_with_snapshot(d, &snapshot, diag);

    d->last = -1;
    d->outcome->loaded = 0;
    if (status == STATUS_OK && snapshot.found) {
        status = apply_stream(d, snapshot.sequence, &snapshot, &ahead, diag);
        if (status == STATUS_OK && ahead) {
            tell_snapshot(d, &snapshot, "the stream has no such event");
            snapshot.found = false;
        }
    }
    d->outcome->snapshot = snapshot.found ? snapshot.sequence : -1;
    if (status != STATUS_OK || snapshot.found)
        return status;
    status = begin_anew(d);
    if (status == STATUS_OK)
        status = apply_stream(d, 0, &snapshot, &ahead, diag);
    return status;
}

/* Queues a snapshot of what was loaded, once enough was: before the command
 * runs, so that what it does to the state is in none. */
enum status aggregate_keep_snapshot(struct dispatch *d, struct diag *diag)
{
    struct aggregates *a = d->aggregates;
    const struct handler *handler = &a->options.handler;
    const struct message message = aggregate_command_message(d);
    const struct handler_call call = aggregate_call_of(d, &message);
    const struct snapshot_of of = snapshot_of(d);
    struct snapshot snapshot = {.found = true, .sequence = d->last};
    struct failure failure;
    enum status status;

    if (d->declaration->snapshot_every == 0 ||
        d->last - d->outcome->snapshot < d->declaration->snapshot_every)
        return STATUS_OK;
    buffer_clear(&a->json);
    status = handler->ops->state_encode(handler->code, &call, AGGREGATE_SLOT,
                                        &a->json, NULL, &a->arena, &failure);
    if (status == STATUS_FAILED) {
        tell_snapshot(d, &snapshot, failure.reason);
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return status;
    snapshot.state = arena_copy(&a->arena, buffer_text(&a->json));
    d->snapshot_queued = true;
    return snapshot_write(a->snapshots, d->db, &of, &snapshot,
                          uuid_v7(a->options.ids, d->now_us), d->now_us,
                          &a->arena, diag);
}

enum status aggregate_moved(struct dispatch *d, bool *moved, struct diag *diag)
{
    struct message *messages;
    size_t count;
    enum status status = read_page(d, d->last + 1, &messages, &count, diag);

    *moved = status == STATUS_OK && count > 0;
    return status;
}
