#include "model/effects.h"

#include "base/memory.h"

struct effects {
    struct effects_options options;
    struct arena arena; /* of the batch */
    struct append_event *events;
    size_t count, capacity;
    size_t call;                   /* the first event of the running call */
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
}

void effects_call_begin(struct effects *effects)
{
    effects->call = effects->count;
}

void effects_call_undo(struct effects *effects)
{
    effects->count = effects->call;
}

struct append_event *effects_call_events(struct effects *effects, size_t *count)
{
    *count = effects->count - effects->call;
    return effects->events + effects->call;
}

size_t effects_count(const struct effects *effects)
{
    return effects->count;
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

enum status effects_send(struct effects *effects, struct db *db,
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
