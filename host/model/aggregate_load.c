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

static void tell_snapshot(const struct dispatch *d, int64_t sequence,
                          const char *what, const char *why)
{
    const struct log_about about = {.consumer = d->declaration->name};

    log_write(d->aggregates->options.log, LOG_WARN, &about,
              "the snapshot of %.*s at sequence number %" PRId64 " %s: %s",
              TEXT_ARGS(d->command->id), sequence, what, why);
}

static void tell_unused(const struct dispatch *d,
                        const struct snapshot *snapshot, const char *why)
{
    tell_snapshot(d, snapshot->sequence,
                  "is not used and all events are read instead", why);
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
    tell_unused(d, snapshot, failure.reason);
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

/* Which of the stored events it is, for who has to mend the script. */
static void name_event(const struct dispatch *d, const struct message *message)
{
    failure_add(d->failure,
                "; at event %" PRId64 " of %s " TEXT_FORMAT ": " TEXT_FORMAT
                ", revision %d, position %" PRId64,
                message->sequence, d->declaration->name,
                TEXT_ARGS(d->command->id), TEXT_ARGS(message->type),
                message->revision, message->position);
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
            if (status == STATUS_FAILED)
                name_event(d, &messages[i]);
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
            tell_unused(d, &snapshot, "the stream has no such event");
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

enum status aggregate_take_snapshot(struct dispatch *d)
{
    struct aggregates *a = d->aggregates;
    const struct handler *handler = &a->options.handler;
    const struct message message = aggregate_command_message(d);
    const struct handler_call call = aggregate_call_of(d, &message);
    struct failure failure;
    enum status status;

    if (d->declaration->snapshot_every == 0 ||
        d->last - d->outcome->snapshot < d->declaration->snapshot_every)
        return STATUS_OK;
    buffer_clear(&a->json);
    status = handler->ops->state_encode(handler->code, &call, AGGREGATE_SLOT,
                                        &a->json, NULL, &a->arena, &failure);
    if (status == STATUS_FAILED) {
        tell_snapshot(d, d->last,
                      "cannot be stored, so that ever more events are read",
                      failure.reason);
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return status;
    d->snapshot = (struct snapshot){
        .found = true,
        .sequence = d->last,
        .state = arena_copy(&a->arena, buffer_text(&a->json)),
    };
    return STATUS_OK;
}

enum status aggregate_keep_snapshot(struct dispatch *d, struct diag *diag)
{
    struct aggregates *a = d->aggregates;
    const struct snapshot_of of = snapshot_of(d);

    if (!d->snapshot.found)
        return STATUS_OK;
    return snapshot_write(a->snapshots, d->db, &of, &d->snapshot,
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
