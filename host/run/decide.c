#include "run/decide.h"

#include "base/json.h"
#include "base/json_member.h"
#include "model/aggregate.h"

#define SLOT 0

static const char COMMAND_ID[] = "00000000-0000-7000-8000-000000000000";

struct deciding {
    const struct decide_command *command;
    const struct declaration *declaration;
    struct handler handler;
    struct arena arena;
    struct message message; /* stands for the command */
    struct failure failure;
};

static struct handler_call call_of(const struct deciding *d,
                                   const struct message *message)
{
    return (struct handler_call){
        .declaration = d->declaration,
        .message = message,
        .key = d->command->id,
        .attempt = 1,
    };
}

static enum status apply(struct deciding *d, const struct append_event *event,
                         int64_t sequence)
{
    struct message message = {
        .position = sequence + 1,
        .id = event->id,
        .key = d->command->id,
        .type = event->type,
        .revision = event->revision,
        .payload = event->payload,
        .metadata = event->metadata,
        .occurred_at = event->occurred_at,
        .aggregate_type = text_of(d->declaration->name),
        .aggregate_id = d->command->id,
        .sequence = sequence,
    };
    const struct handler_call call = call_of(d, &message);

    return d->handler.ops->apply_event(d->handler.code, &call, SLOT,
                                       &d->failure);
}

static enum status apply_all(struct deciding *d,
                             const struct append_event *events, size_t count,
                             int64_t from)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = apply(d, &events[i], from + (int64_t)i);
    return status;
}

/* Appends the state as it is now. */
static enum status encode(struct deciding *d, struct buffer *out)
{
    const struct handler_call call = call_of(d, &d->message);

    return d->handler.ops->state_encode(d->handler.code, &call, SLOT, out, NULL,
                                        &d->arena, &d->failure);
}

static enum status ask(struct deciding *d, struct handler_decision *decision)
{
    const struct handler_call call = call_of(d, &d->message);
    const struct handler_command command = {
        .name = d->command->name,
        .args = d->command->args,
        .metadata = d->command->metadata,
        .id = text_of(COMMAND_ID),
        .cause = text_of(COMMAND_ID),
    };

    *decision = (struct handler_decision){.count = 0};
    return d->handler.ops->command(d->handler.code, &call, SLOT, &command,
                                   &d->arena, decision, &d->failure);
}

/* A command that changes the state would do so for the next one, or not:
 * whatever is loaded then. */
static enum status decide(struct deciding *d, struct handler_decision *decision)
{
    struct buffer before = BUFFER_EMPTY, after = BUFFER_EMPTY;
    enum status status = encode(d, &before);

    if (status == STATUS_OK)
        status = ask(d, decision);
    if (status == STATUS_OK)
        status = encode(d, &after);
    if (status == STATUS_OK &&
        !text_equal(buffer_text(&before), buffer_text(&after))) {
        failure_set(&d->failure, false, "state",
                    "command '%.*s' changes the state; only apply does, and "
                    "a command says by events what is to change",
                    TEXT_ARGS(d->command->name));
        status = STATUS_FAILED;
    }
    buffer_free(&before);
    buffer_free(&after);
    return status;
}

static void write_event(struct buffer *out, const struct append_event *event)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_text(out, &first, "type", event->type);
    json_member_int64(out, &first, "revision", event->revision);
    json_member_raw(out, &first, "payload", event->payload);
    json_member_raw(out, &first, "metadata", event->metadata);
    if (event->aggregate_type.data != NULL) {
        json_member_text(out, &first, "aggregate_type", event->aggregate_type);
    }
    if (event->aggregate_id.data != NULL) {
        json_member_text(out, &first, "aggregate_id", event->aggregate_id);
    }
    buffer_append_char(out, '}');
}

static enum status write_decision(struct deciding *d,
                                  const struct handler_decision *decision,
                                  struct buffer *out)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "outcome",
                       decision->rejected ? "rejected" : "accepted");
    if (decision->rejected) {
        json_member_text(out, &first, "reason", decision->reason);
    }
    if (decision->details.data != NULL) {
        json_member_raw(out, &first, "details", decision->details);
    }
    json_write_key(out, &first, "events");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < decision->count; i++) {
        buffer_append_string(out, i > 0 ? "," : "");
        write_event(out, &decision->events[i]);
    }
    buffer_append_char(out, ']');
    json_write_key(out, &first, "state");
    if (encode(d, out) != STATUS_OK)
        return STATUS_FAILED;
    buffer_append_char(out, '}');
    return STATUS_OK;
}

static bool is_own(const struct deciding *d, const struct append_event *event)
{
    struct text type = event->aggregate_type, id = event->aggregate_id;

    return (type.data == NULL ||
            text_equal(type, text_of(d->declaration->name))) &&
           (id.data == NULL || text_equal(id, d->command->id));
}

static enum status run(struct deciding *d, struct buffer *out)
{
    const struct decide_command *command = d->command;
    const struct handler_call call = call_of(d, &d->message);
    struct handler_decision decision;
    int64_t sequence = (int64_t)command->count;
    enum status status = d->handler.ops->state_initial(d->handler.code, &call,
                                                       SLOT, &d->failure);

    if (status == STATUS_OK)
        status = apply_all(d, command->events, command->count, 0);
    if (status == STATUS_OK)
        status = decide(d, &decision);
    for (size_t i = 0; status == STATUS_OK && i < decision.count; i++)
        if (is_own(d, &decision.events[i]))
            status = apply(d, &decision.events[i], sequence++);
    if (status == STATUS_OK)
        status = write_decision(d, &decision, out);
    return status;
}

static enum status find(struct script *script, struct deciding *d,
                        struct diag *diag)
{
    size_t count;
    const struct declaration *list = script_aggregates(script, &count);
    enum status status = aggregate_find(list, count, d->command->aggregate,
                                        &d->declaration, diag);

    if (status == STATUS_OK)
        status = aggregate_has_command(d->declaration, d->command->name, diag);
    return status;
}

enum status decide_run(const struct script_options *options,
                       const struct decide_command *command, struct buffer *out,
                       struct diag *diag)
{
    struct deciding d = {.command = command, .arena = ARENA_EMPTY};
    struct script *script;
    size_t bad;
    enum status status = script_open(options, &script, diag);

    if (status != STATUS_OK)
        return status;
    d.handler = script_handler(script);
    d.message = (struct message){.key = command->id, .type = command->name};
    status = find(script, &d, diag);
    if (status == STATUS_OK) {
        status = script_check_events(script, command->events, command->count,
                                     &bad, diag);
        if (status != STATUS_OK)
            diag_wrap(diag, "given event %zu", bad + 1);
    }
    if (status == STATUS_OK) {
        status = run(&d, out);
        if (status == STATUS_FAILED)
            diag_set(diag, STATUS_FAILED, "%s", d.failure.reason);
    }
    arena_free(&d.arena);
    script_close(script);
    return status;
}
