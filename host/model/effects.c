#include "model/effects.h"

#include "base/memory.h"
#include "consumer/deadline.h"

#include <assert.h>
#include <inttypes.h>

struct effects {
    struct effects_options options;
    struct arena arena; /* of the batch */
    struct append_event *events;
    size_t count, capacity;
    size_t call; /* the first event of the running call */
    struct outgoing *messages;
    size_t nmessages, messages_capacity;
    size_t call_messages;          /* the first message of the running call */
    int64_t staged_at;             /* the time of the last that were sent */
    struct aggregates *aggregates; /* opened by the first command */
};

struct effects *effects_new(const struct effects_options *options)
{
    struct effects *effects = mem_alloc(sizeof(*effects));

    effects->options = *options;
    return effects;
}

void effects_free(struct effects *effects)
{
    if (effects == NULL)
        return;
    aggregates_close(effects->aggregates);
    arena_free(&effects->arena);
    mem_free(effects->events);
    mem_free(effects->messages);
    mem_free(effects);
}

int64_t effects_now(const struct effects *effects)
{
    return clock_now(effects->options.clock);
}

void effects_batch_begin(struct effects *effects)
{
    arena_reset(&effects->arena);
    effects->count = effects->call = 0;
    effects->nmessages = effects->call_messages = 0;
}

void effects_call_begin(struct effects *effects)
{
    effects->call = effects->count;
    effects->call_messages = effects->nmessages;
}

void effects_call_undo(struct effects *effects)
{
    effects->count = effects->call;
    effects->nmessages = effects->call_messages;
}

struct effects_mark effects_mark(const struct effects *effects)
{
    return (struct effects_mark){effects->count, effects->nmessages};
}

void effects_undo_to(struct effects *effects, struct effects_mark mark)
{
    assert(mark.events >= effects->call && mark.events <= effects->count);
    assert(mark.messages >= effects->call_messages &&
           mark.messages <= effects->nmessages);
    effects->count = mark.events;
    effects->nmessages = mark.messages;
}

struct append_event *effects_call_events(struct effects *effects, size_t *count)
{
    *count = effects->count - effects->call;
    return effects->events + effects->call;
}

bool effects_any(const struct effects *effects)
{
    return effects->count > 0 || effects->nmessages > 0;
}

enum status effects_emit(struct effects *effects,
                         const struct append_event *event, struct diag *diag)
{
    struct arena *arena = &effects->arena;
    struct append_event *kept;
    enum status status = capture_check(event, effects->options.payload_limit,
                                       diag);

    if (status != STATUS_OK)
        return status;
    if (effects->count == effects->capacity) {
        effects->capacity = effects->capacity > 0 ? 2 * effects->capacity : 64;
        effects->events = mem_grow(effects->events, effects->capacity,
                                   sizeof(*effects->events));
    }
    kept = &effects->events[effects->count++];
    *kept = *event;
    kept->checked = true;
    kept->key = arena_copy(arena, event->key);
    kept->type = arena_copy(arena, event->type);
    kept->payload = arena_copy(arena, event->payload);
    kept->metadata = arena_copy(arena, event->metadata);
    return STATUS_OK;
}

static const struct uuid *keep_uuid(struct arena *arena, const struct uuid *id)
{
    struct uuid *kept;

    if (id == NULL)
        return NULL;
    kept = arena_alloc(arena, sizeof(*kept));
    *kept = *id;
    return kept;
}

static enum status check_payload(const struct effects *effects,
                                 const struct outgoing *message,
                                 struct diag *diag)
{
    int64_t limit = effects->options.payload_limit;

    if ((uint64_t)message->payload.len <= (uint64_t)limit)
        return STATUS_OK;
    return diag_set(diag, STATUS_LIMIT,
                    "payload has %zu bytes; limits.payload allows %" PRId64,
                    message->payload.len, limit);
}

enum status effects_publish(struct effects *effects,
                            const struct outgoing *message, struct diag *diag)
{
    struct arena *arena = &effects->arena;
    struct outgoing *kept;
    int64_t now = effects_now(effects);
    enum status status = check_payload(effects, message, diag);

    if (status == STATUS_OK)
        status = outgoing_check(message, diag);
    if (status != STATUS_OK)
        return status;
    if (effects->nmessages == effects->messages_capacity) {
        effects->messages_capacity = effects->messages_capacity > 0
                                         ? 2 * effects->messages_capacity
                                         : 64;
        effects->messages = mem_grow(effects->messages,
                                     effects->messages_capacity,
                                     sizeof(*effects->messages));
    }
    kept = &effects->messages[effects->nmessages++];
    *kept = *message;
    if (!message->own_id && !message->again)
        kept->event_id = uuid_v7(effects->options.ids, now);
    if (message->occurred_at == 0)
        kept->occurred_at = now;
    kept->route = arena_copy(arena, message->route);
    kept->type = arena_copy(arena, message->type);
    kept->payload = arena_copy(arena, message->payload);
    kept->ordering_key = arena_copy(arena, message->ordering_key);
    kept->metadata = arena_copy(arena, message->metadata);
    kept->traceparent = arena_copy(arena, message->traceparent);
    kept->tenant_id = keep_uuid(arena, message->tenant_id);
    kept->execution_id = keep_uuid(arena, message->execution_id);
    kept->correlation_id = keep_uuid(arena, message->correlation_id);
    kept->causation_id = keep_uuid(arena, message->causation_id);
    return STATUS_OK;
}

enum status effects_dispatch(struct effects *effects,
                             const struct aggregate_command *command,
                             struct aggregate_outcome *outcome,
                             struct failure *failure, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (effects->aggregates == NULL)
        status = aggregates_open(&effects->options.aggregates,
                                 &effects->aggregates, diag);
    if (status != STATUS_OK)
        return status;
    return aggregate_dispatch(effects->aggregates, effects->options.db, command,
                              outcome, failure, diag);
}

static enum status send_events(struct effects *effects, struct db *db,
                               struct diag *diag)
{
    const struct effects_options *options = &effects->options;
    const struct append_options append = {
        .ids = options->ids,
        .now_us = clock_now(options->clock),
        .payload_limit = options->payload_limit,
        .notify = options->notify,
    };
    struct append_result *results;
    size_t bad;

    if (effects->count == 0)
        return STATUS_OK;
    results = arena_alloc(&effects->arena, effects->count * sizeof(*results));
    return capture_append(options->capture, db, &append, effects->events,
                          effects->count, results, &bad, diag);
}

/* The database's clock is estimated between two looks at it, so it may seem to
 * step back by as much as an answer took; by more it was put right. */
#define STEP_US (10 * CLOCK_SECOND)

/* Relays judge by the database's clock what is due and what came first, and
 * hosts whose own are wrong stage for the same key. */
static enum status send_messages(struct effects *effects, struct db *db,
                                 struct diag *diag)
{
    const struct outgoing_stage *outgoing = &effects->options.outgoing;
    int64_t now;
    size_t bad;
    enum status status;

    if (effects->nmessages == 0)
        return STATUS_OK;
    status = deadline_clock(db, effects->options.clock, &now, diag);
    if (status != STATUS_OK)
        return status;
    if (now < effects->staged_at && effects->staged_at - now < STEP_US)
        now = effects->staged_at;
    effects->staged_at = now;
    return outgoing->stage(outgoing->self, effects->messages,
                           effects->nmessages, now, &effects->arena, &bad,
                           diag);
}

enum status effects_send(struct effects *effects, struct db *db,
                         struct failure *failure, struct diag *diag)
{
    const char *class = "emit";
    enum status status = send_events(effects, db, diag);

    if (status == STATUS_OK) {
        class = "publish";
        status = send_messages(effects, db, diag);
    }
    if (status != STATUS_REFUSED && status != STATUS_INVALID &&
        status != STATUS_LIMIT)
        return status;
    failure_set(failure, false, class, "%s", diag->message);
    return STATUS_FAILED;
}
