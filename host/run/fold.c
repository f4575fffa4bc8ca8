#include "run/fold.h"

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"

#include <inttypes.h>

struct fold_key {
    struct text key;
    bool present;
    const struct message *last; /* newest message applied to it */
};

struct fold {
    struct handler handler;
    const struct declaration *declaration;
    struct arena arena;
    struct map slots; /* key -> place in keys */
    struct fold_key *keys;
    size_t nkeys, capacity;
    /* of the message in hand */
    const struct message *message;
    struct text *pending;
    size_t npending, pending_capacity;
};

static enum status find(struct script *script, const char *name,
                        const struct declaration **declaration,
                        struct diag *diag)
{
    size_t count;
    const struct declaration *list = script_declarations(script, &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) {
            *declaration = &list[i];
            if (list[i].kind == DECLARATION_PROJECTION)
                return STATUS_OK;
            return diag_set(diag, STATUS_USAGE,
                            "'%s' keeps no state: check it with a host", name);
        }
    return diag_set(diag, STATUS_USAGE, "no file declares a projection '%s'",
                    name);
}

static void take_key(void *arg, struct text key)
{
    struct fold *fold = arg;

    if (fold->npending == fold->pending_capacity) {
        fold->pending_capacity = 2 * fold->npending + 8;
        fold->pending = mem_grow(fold->pending, fold->pending_capacity,
                                 sizeof(*fold->pending));
    }
    fold->pending[fold->npending++] = arena_copy(&fold->arena, key);
}

static struct handler_call
call_of(const struct fold *fold, const struct message *message, struct text key)
{
    return (struct handler_call){
        .declaration = fold->declaration,
        .message = message,
        .key = key,
        .attempt = 1,
    };
}

static size_t slot_of(struct fold *fold, struct text key)
{
    bool added;
    int64_t slot = map_put(&fold->slots, key, (int64_t)fold->nkeys, &added);

    if (!added)
        return (size_t)slot;
    if (fold->nkeys == fold->capacity) {
        fold->capacity = 2 * fold->nkeys + 16;
        fold->keys = mem_grow(fold->keys, fold->capacity, sizeof(*fold->keys));
    }
    fold->keys[fold->nkeys] = (struct fold_key){.key = key};
    return fold->nkeys++;
}

static enum status apply(struct fold *fold, struct text key,
                         struct failure *failure, struct diag *diag)
{
    const struct handler_ops *ops = fold->handler.ops;
    const struct handler_call call = call_of(fold, fold->message, key);
    size_t slot = slot_of(fold, key);
    enum handler_outcome outcome;
    enum status status = STATUS_OK;

    if (!fold->keys[slot].present)
        status = ops->state_initial(fold->handler.code, &call, slot, failure);
    if (status == STATUS_OK)
        status = ops->apply_state(fold->handler.code, &call, slot, &outcome,
                                  failure, diag);
    if (status != STATUS_OK)
        return status;
    if (outcome == HANDLER_UNTOUCHED)
        return STATUS_OK;
    fold->keys[slot].present = outcome == HANDLER_CHANGED;
    fold->keys[slot].last = fold->message;
    return STATUS_OK;
}

static bool wanted(const struct declaration *d, const struct message *m)
{
    bool type = false, aggregate = d->naggregates == 0;

    for (size_t i = 0; !type && i < d->nstored; i++)
        type = text_equal(d->stored[i], m->type);
    for (size_t i = 0; !aggregate && i < d->naggregates; i++)
        aggregate = text_equal(d->aggregates[i], m->aggregate_type);
    return type && aggregate;
}

static enum status apply_message(struct fold *fold, struct diag *diag)
{
    const struct message *m = fold->message;
    const struct handler_call call = call_of(fold, m, TEXT_NONE);
    struct failure failure;
    enum status status = STATUS_OK;

    fold->npending = 0;
    if (fold->declaration->own_key)
        status = fold->handler.ops->keys(fold->handler.code, &call, take_key,
                                         fold, &failure);
    else if (m->key.data != NULL)
        take_key(fold, m->key);
    for (size_t i = 0; status == STATUS_OK && i < fold->npending; i++)
        status = apply(fold, fold->pending[i], &failure, diag);
    if (status == STATUS_FAILED)
        return diag_set(diag, STATUS_FAILED, "message %" PRId64 " (%.*s): %s",
                        m->position, TEXT_ARGS(m->type), failure.reason);
    return status;
}

static enum status give(struct fold *fold, fold_fn fn, void *arg,
                        struct diag *diag)
{
    struct db_value *fields = mem_alloc((fold->declaration->nfields + 1) *
                                        sizeof(*fields));
    struct buffer json = BUFFER_EMPTY;
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < fold->nkeys; i++) {
        const struct fold_key *k = &fold->keys[i];
        struct handler_call call;
        struct failure failure;

        if (!k->present)
            continue;
        call = call_of(fold, k->last, k->key);
        buffer_clear(&json);
        status = fold->handler.ops->state_encode(fold->handler.code, &call, i,
                                                 &json, fields, &fold->arena,
                                                 &failure);
        if (status == STATUS_OK)
            status = fn(arg, k->key, buffer_text(&json), diag);
        else if (status == STATUS_FAILED)
            diag_set(diag, status, "state of '%.*s': %s", TEXT_ARGS(k->key),
                     failure.reason);
    }
    buffer_free(&json);
    mem_free(fields);
    return status;
}

/* One pass over the messages, its result as one text. */
static enum status run_pass(struct fold *fold, const struct message *messages,
                            size_t count, fold_fn fn, void *arg,
                            struct diag *diag)
{
    enum status status = STATUS_OK;

    map_clear(&fold->slots);
    fold->nkeys = 0;
    arena_reset(&fold->arena);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (!wanted(fold->declaration, &messages[i]))
            continue;
        fold->message = &messages[i];
        status = apply_message(fold, diag);
    }
    if (status == STATUS_OK)
        status = give(fold, fn, arg, diag);
    fold->handler.ops->batch_end(fold->handler.code);
    return status;
}

static enum status remember(void *arg, struct text key, struct text state,
                            struct diag *diag)
{
    struct buffer *out = arg;

    (void)diag;
    json_write_string(out, key);
    buffer_append_text(out, state);
    return STATUS_OK;
}

/* The message that appending an event as number `i` would give. */
static struct message message_of(const struct append_event *event, size_t i)
{
    return (struct message){
        .position = (int64_t)i + 1,
        .id = event->id,
        .key = event->aggregate_id,
        .type = event->type,
        .revision = event->revision,
        .payload = event->payload,
        .metadata = event->metadata,
        .occurred_at = event->occurred_at,
        .aggregate_type = event->aggregate_type,
        .aggregate_id = event->aggregate_id,
        .sequence = event->expected >= 0 ? event->expected : (int64_t)i,
    };
}

enum status fold_messages(const struct script_options *options,
                          const char *projection, struct append_event *events,
                          size_t count, fold_fn fn, void *arg,
                          struct diag *diag)
{
    struct fold fold = {.arena = ARENA_EMPTY};
    struct buffer first = BUFFER_EMPTY, second = BUFFER_EMPTY;
    struct message *messages;
    struct script *script;
    size_t bad;
    enum status status = script_open(options, &script, diag);

    if (status != STATUS_OK)
        return status;
    messages = mem_alloc((count + 1) * sizeof(*messages));
    fold.handler = script_handler(script);
    status = find(script, projection, &fold.declaration, diag);
    if (status == STATUS_OK) {
        status = script_check_events(script, events, count, &bad, diag);
        if (status != STATUS_OK)
            diag_wrap(diag, "event %zu", bad + 1);
    }
    for (size_t i = 0; i < count; i++)
        messages[i] = message_of(&events[i], i);
    if (status == STATUS_OK)
        status = run_pass(&fold, messages, count, remember, &first, diag);
    if (status == STATUS_OK)
        status = run_pass(&fold, messages, count, remember, &second, diag);
    if (status == STATUS_OK &&
        !text_equal(buffer_text(&first), buffer_text(&second)))
        status = diag_set(diag, STATUS_FAILED,
                          "projection '%s' gives another result when it runs "
                          "again: a handler changes a local of its file, "
                          "which outlives messages and rollbacks",
                          projection);
    if (status == STATUS_OK)
        status = run_pass(&fold, messages, count, fn, arg, diag);
    buffer_free(&first);
    buffer_free(&second);
    map_free(&fold.slots);
    mem_free(fold.keys);
    mem_free(fold.pending);
    mem_free(messages);
    arena_free(&fold.arena);
    script_close(script);
    return status;
}
