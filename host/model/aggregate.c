#include "model/aggregate_parts.h"

#include "base/json.h"
#include "base/memory.h"
#include "model/snapshot.h"
#include "topic/append.h"

enum status aggregates_open(const struct aggregates_options *options,
                            struct aggregates **aggregates, struct diag *diag)
{
    struct aggregates *opened = mem_alloc(sizeof(*opened));
    enum status status;

    opened->options = *options;
    status = snapshots_open(options->dialect, options->names,
                            &opened->snapshots, diag);
    if (status != STATUS_OK) {
        aggregates_close(opened);
        return status;
    }
    *aggregates = opened;
    return STATUS_OK;
}

void aggregates_close(struct aggregates *aggregates)
{
    if (aggregates == NULL)
        return;
    snapshots_close(aggregates->snapshots);
    arena_free(&aggregates->arena);
    arena_free(&aggregates->page);
    buffer_free(&aggregates->json);
    mem_free(aggregates);
}

/* --- what is asked for
 * -------------------------------------------------------------------- */

enum status aggregate_find(const struct declaration *declarations, size_t count,
                           struct text name,
                           const struct declaration **declaration,
                           struct diag *diag)
{
    const char **names;
    char wanted[256];
    const char *near;

    for (size_t i = 0; i < count; i++)
        if (text_equal(text_of(declarations[i].name), name)) {
            *declaration = &declarations[i];
            return STATUS_OK;
        }
    names = mem_alloc((count + 1) * sizeof(*names));
    for (size_t i = 0; i < count; i++)
        names[i] = declarations[i].name;
    text_clean(name, wanted, sizeof(wanted));
    near = text_nearest(wanted, names);
    mem_free(names);
    return diag_set(diag, STATUS_USAGE,
                    "no aggregate is called '%.200s'%s%s%s; `moontide check` "
                    "lists them",
                    wanted, near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "");
}

enum status aggregate_has_command(const struct declaration *declaration,
                                  struct text name, struct diag *diag)
{
    const char **names;
    char wanted[256];
    const char *near;

    for (size_t i = 0; i < declaration->ncommands; i++)
        if (text_equal(declaration->commands[i], name))
            return STATUS_OK;
    names = mem_alloc((declaration->ncommands + 1) * sizeof(*names));
    for (size_t i = 0; i < declaration->ncommands; i++)
        names[i] = declaration->commands[i].data;
    text_clean(name, wanted, sizeof(wanted));
    near = text_nearest(wanted, names);
    mem_free(names);
    return diag_set(diag, STATUS_USAGE,
                    "aggregate '%s' has no command '%.200s'%s%s%s (%s:%d)",
                    declaration->name, wanted,
                    near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "",
                    declaration->file, declaration->line);
}

static enum status check_json(const char *what, struct text json, bool object,
                              struct diag *diag)
{
    enum status status = json_check(json, NULL, diag);

    if (status != STATUS_OK)
        return diag_wrap(diag, "%s", what);
    if (object && json_first(json).kind != JSON_OBJECT)
        return diag_set(diag, STATUS_INVALID, "%s: a JSON object expected",
                        what);
    return STATUS_OK;
}

enum status aggregate_check_id(struct text id, struct diag *diag)
{
    if (!text_utf8_valid(id))
        return diag_set(diag, STATUS_INVALID,
                        "the id of the aggregate is not valid UTF-8");
    if (id.len > 0 && memchr(id.data, '\0', id.len) != NULL)
        return diag_set(diag, STATUS_INVALID,
                        "the id of the aggregate contains a NUL character");
    if (id.len == 0 || text_utf8_length(id) > MESSAGE_KEY_MAX)
        return diag_set(diag, STATUS_INVALID,
                        "the id of the aggregate has %zu characters; 1 to %d "
                        "are allowed",
                        text_utf8_length(id), MESSAGE_KEY_MAX);
    return STATUS_OK;
}

static enum status check_command(const struct dispatch *d, struct diag *diag)
{
    const struct aggregate_command *command = d->command;
    enum status status = aggregate_check_id(command->id, diag);

    if (status != STATUS_OK)
        return status;
    status = aggregate_has_command(d->declaration, command->name, diag);
    if (status == STATUS_OK && command->args.data != NULL)
        status = check_json("the command's arguments", command->args, false,
                            diag);
    if (status == STATUS_OK && command->metadata.data != NULL)
        status = check_json("the command's metadata", command->metadata, true,
                            diag);
    return status;
}

/* --- deciding
 * ------------------------------------------------------------------------------
 */

static enum status decide(struct dispatch *d, struct handler_decision *decision)
{
    const struct handler *handler = &d->aggregates->options.handler;
    const struct aggregate_command *command = d->command;
    const struct message message = aggregate_command_message(d);
    const struct handler_call call = aggregate_call_of(d, &message);
    char id[UUID_TEXT_LEN + 1], cause[UUID_TEXT_LEN + 1];
    const struct handler_command asked = {
        .name = command->name,
        .args = command->args.data != NULL ? command->args : TEXT_LITERAL("{}"),
        .metadata = command->metadata,
        .id = {id, UUID_TEXT_LEN},
        .cause = {cause, UUID_TEXT_LEN},
    };

    uuid_format(&d->id, id);
    uuid_format(command->has_cause ? &command->cause : &d->id, cause);
    *decision = (struct handler_decision){.count = 0};
    return handler->ops->command(handler->code, &call, AGGREGATE_SLOT, &asked,
                                 &d->aggregates->arena, decision, d->failure);
}

static bool is_own(const struct dispatch *d, const struct append_event *event)
{
    return text_equal(event->aggregate_id, d->command->id) &&
           text_equal(event->aggregate_type, text_of(d->declaration->name));
}

/* Own events go behind what was loaded and nowhere else. An event that the
 * aggregate could not apply would make it unreadable: it is tried before. */
static enum status place_events(struct dispatch *d,
                                struct handler_decision *decision)
{
    int64_t last = d->last;

    for (size_t i = 0; i < decision->count; i++) {
        struct append_event *event = &decision->events[i];
        struct message message = aggregate_command_message(d);
        enum status status;

        if (event->aggregate_type.data == NULL)
            event->aggregate_type = text_of(d->declaration->name);
        if (event->aggregate_id.data == NULL)
            event->aggregate_id = d->command->id;
        event->expect = APPEND_ANY;
        if (!is_own(d, event))
            continue;
        event->expect = last < 0 ? APPEND_NONE : APPEND_AT;
        event->expected = last++;
        message.type = event->type;
        message.revision = event->revision;
        message.payload = event->payload;
        message.metadata = event->metadata;
        message.sequence = last;
        if (event->has_occurred_at)
            message.occurred_at = event->occurred_at;
        if (event->has_id)
            message.id = event->id;
        status = aggregate_apply(d, &message);
        if (status == STATUS_FAILED)
            failure_add(d->failure,
                        "; at event %zu that command '" TEXT_FORMAT
                        "' gives, which is not appended: " TEXT_FORMAT,
                        i + 1, TEXT_ARGS(d->command->name),
                        TEXT_ARGS(event->type));
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Whether the refusal of an append means that somebody was faster. */
static enum status judge_refusal(struct dispatch *d, struct diag *diag)
{
    struct diag refused = *diag;
    bool moved;
    enum status status = aggregate_moved(d, &moved, diag);

    if (status != STATUS_OK)
        return status;
    return diag_set(diag, moved ? STATUS_CONFLICT : refused.status, "%s",
                    refused.message);
}

static enum status append(struct dispatch *d,
                          const struct handler_decision *decision,
                          struct append_result *results, struct diag *diag)
{
    const struct aggregates_options *options = &d->aggregates->options;
    const struct append_options append_options = {
        .ids = options->ids,
        .now_us = d->now_us,
        .payload_limit = options->payload_limit,
    };
    size_t bad;
    enum status status = append_events(options->store, d->db, &append_options,
                                       decision->events, decision->count,
                                       results, &bad, diag);

    if (status == STATUS_REFUSED)
        status = judge_refusal(d, diag);
    if (status == STATUS_INVALID && bad < decision->count) {
        failure_set(d->failure, false, "error",
                    "%s:%d: event %zu that command '" TEXT_FORMAT "' gives: %s",
                    d->declaration->file, d->declaration->line, bad + 1,
                    TEXT_ARGS(d->command->name), diag->message);
        return STATUS_FAILED;
    }
    return status;
}

static void take_results(struct dispatch *d,
                         const struct handler_decision *decision,
                         const struct append_result *results)
{
    struct aggregate_event *events = arena_alloc(
        &d->aggregates->arena, decision->count * sizeof(*events));

    for (size_t i = 0; i < decision->count; i++) {
        const struct append_event *event = &decision->events[i];

        events[i] = (struct aggregate_event){
            .id = results[i].id,
            .aggregate_type = event->aggregate_type,
            .aggregate_id = event->aggregate_id,
            .type = event->type,
            .revision = event->revision,
            .payload = event->payload,
            .metadata = event->metadata,
            .occurred_at = event->has_occurred_at ? event->occurred_at
                                                  : d->now_us,
            .sequence = results[i].sequence,
            .position = results[i].position,
        };
        if (is_own(d, event) && results[i].sequence > d->outcome->version)
            d->outcome->version = results[i].sequence;
    }
    d->outcome->events = events;
    d->outcome->nevents = decision->count;
}

static enum status run(struct dispatch *d, struct diag *diag)
{
    struct handler_decision decision;
    struct append_result *results;
    enum status status = aggregate_load(d, diag);

    if (status == STATUS_OK)
        status = aggregate_take_snapshot(d);
    if (status == STATUS_OK)
        status = decide(d, &decision);
    if (status != STATUS_OK)
        return status;
    d->outcome->version = d->last;
    d->outcome->rejected = decision.rejected;
    d->outcome->reason = decision.reason;
    d->outcome->details = decision.details;
    if (decision.count == 0)
        return STATUS_OK;
    status = place_events(d, &decision);
    if (status != STATUS_OK)
        return status;
    results = arena_alloc(&d->aggregates->arena,
                          decision.count * sizeof(*results));
    status = append(d, &decision, results, diag);
    if (status == STATUS_OK)
        take_results(d, &decision, results);
    return status;
}

/* What is queued is sent here, so that a clash is known for what it is. */
static enum status send(struct dispatch *d, struct diag *diag)
{
    struct diag clash;
    enum status status;

    if (!d->command->has_command_id && !d->snapshot.found)
        return STATUS_OK;
    status = db_flush(d->db, NULL, diag);
    if (status != STATUS_UNIQUE)
        return status;
    clash = *diag;
    return diag_set(diag, STATUS_CONFLICT,
                    "the same command or snapshot was written at the same "
                    "time (%s); run the transaction again",
                    clash.constraint);
}

enum status aggregate_dispatch(struct aggregates *aggregates, struct db *db,
                               const struct aggregate_command *command,
                               struct aggregate_outcome *outcome,
                               struct failure *failure, struct diag *diag)
{
    const struct aggregates_options *options = &aggregates->options;
    struct dispatch d = {
        .aggregates = aggregates,
        .db = db,
        .command = command,
        .now_us = clock_now(options->clock),
        .outcome = outcome,
        .failure = failure,
    };
    bool done = false;
    enum status status;

    arena_reset(&aggregates->arena);
    d.id = command->has_command_id ? command->command_id
                                   : uuid_v7(options->ids, d.now_us);
    *outcome = (struct aggregate_outcome){
        .command_id = d.id,
        .version = -1,
        .snapshot = -1,
    };
    status = aggregate_find(options->declarations, options->count,
                            command->aggregate, &d.declaration, diag);
    if (d.declaration == NULL)
        return status;
    status = check_command(&d, diag);
    if (status == STATUS_OK && command->has_command_id)
        status = aggregate_result_find(&d, &done, diag);
    if (status != STATUS_OK || done)
        return status;
    status = run(&d, diag);
    if (status == STATUS_OK)
        status = aggregate_keep_snapshot(&d, diag);
    if (status == STATUS_OK && command->has_command_id)
        status = aggregate_result_keep(&d, diag);
    if (status == STATUS_OK)
        status = send(&d, diag);
    return status;
}
