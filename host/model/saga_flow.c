#include "model/saga_flow.h"

#include "base/json.h"
#include "base/json_member.h"

/* An alarm, to be told when the batch ends. */
struct saga_alert {
    struct saga_alert *next;
    size_t slot;
    struct saga_step_row row;
    enum saga_steps_alarm alarm;
};

/* One unit of work under way. */
struct flow {
    struct saga_batch *batch;
    size_t slot;
    struct handler_call *call;
    struct handler_part part;
    bool of_deadline;
    struct saga_steps *steps;
    struct saga_steps_turn turn;
};

static struct saga_slot *slot_of(const struct flow *f)
{
    return &f->batch->slots[f->slot];
}

static const struct declaration *declaration_of(const struct flow *f)
{
    return f->batch->options.declaration;
}

/* --- the steps of an instance --------------------------------------------- */

static struct saga_steps *make_steps(struct saga_batch *b,
                                     const struct saga_slot *slot)
{
    const struct declaration *d = b->options.declaration;
    struct saga_steps *steps = arena_alloc_zero(&b->arena, sizeof(*steps));

    *steps = (struct saga_steps){
        .rules = d->steps,
        .nrules = d->nsteps,
        .retry = d->policy.retry,
        .instance = slot->row.id,
        .arena = &b->arena,
    };
    return steps;
}

/* Copies them, so that the unit's failure leaves those before it. */
static void begin(struct flow *f)
{
    const struct saga_slot *slot = slot_of(f);
    struct saga_batch *b = f->batch;
    const struct saga_steps *before = slot->steps;

    f->steps = make_steps(b, slot);
    f->steps->ended = slot->completed;
    f->steps->now = clock_now(b->options.clock);
    for (size_t i = 0; before != NULL && i < before->nrows; i++) {
        f->steps->rows = arena_grow(&b->arena, f->steps->rows, i,
                                    sizeof(*f->steps->rows));
        f->steps->rows[i] = before->rows[i];
        f->steps->nrows++;
    }
}

enum status saga_flow_load(struct saga_batch *b, struct db *db,
                           struct diag *diag)
{
    struct saga_step_owner *owners;
    size_t count = 0;

    if (b->options.declaration->nsteps == 0)
        return STATUS_OK;
    owners = arena_alloc(&b->arena, b->nslots * sizeof(*owners) + 1);
    for (size_t i = 0; i < b->nslots; i++) {
        struct saga_slot *slot = &b->slots[i];

        if (!slot->present)
            continue;
        slot->steps = make_steps(b, slot);
        owners[count++] = (struct saga_step_owner){slot->row.saga_id,
                                                   slot->steps};
    }
    return saga_step_store_load(&b->steps, db, owners, count, &b->arena, diag);
}

/* --- alarms --------------------------------------------------------------- */

static void keep_alerts(struct flow *f)
{
    struct saga_batch *b = f->batch;

    for (size_t i = 0; i < f->turn.nalerts; i++) {
        struct saga_alert *alert = arena_alloc(&b->arena, sizeof(*alert));

        *alert = (struct saga_alert){
            .next = slot_of(f)->alerts,
            .slot = f->slot,
            .row = f->steps->rows[f->turn.alerts[i].row],
            .alarm = f->turn.alerts[i].alarm,
        };
        slot_of(f)->alerts = alert;
    }
}

static void tell(const struct saga_batch *b, const struct saga_slot *slot,
                 const struct saga_alert *alert)
{
    const struct log_about about = {
        .consumer = b->options.declaration->name,
    };
    struct text saga = slot->row.saga_id;
    struct text step = alert->row.name;
    bool back = alert->row.state == SAGA_STEP_STUCK;

    switch (alert->alarm) {
    case SAGA_STEPS_SILENT:
        log_write(b->options.log, LOG_WARN, &about,
                  "step '%.*s' of saga '%.*s' has no answer in time: its "
                  "command was sent again; silence does not undo it",
                  TEXT_ARGS(step), TEXT_ARGS(saga));
        break;
    case SAGA_STEPS_DECLINED:
        log_write(b->options.log, LOG_WARN, &about,
                  "step '%.*s' of saga '%.*s' was declined (%.*s) and "
                  "cannot be undone any more: its command will be sent again",
                  TEXT_ARGS(step), TEXT_ARGS(saga),
                  TEXT_ARGS(alert->row.reason));
        break;
    case SAGA_STEPS_STUCK:
        log_write(b->options.log, LOG_ERROR, &about,
                  "the %s of step '%.*s' of saga '%.*s' was sent %d times "
                  "without an answer; it goes on being sent; see `moontide "
                  "sagas show`, retry and confirm",
                  back ? "compensation" : "command", TEXT_ARGS(step),
                  TEXT_ARGS(saga),
                  back ? alert->row.compensation_sends : alert->row.sends);
        break;
    case SAGA_STEPS_BEYOND:
        log_write(b->options.log, LOG_ERROR, &about,
                  "step '%.*s' of saga '%.*s' has succeeded after the saga "
                  "was taken back, and nothing undoes it: somebody has to",
                  TEXT_ARGS(step), TEXT_ARGS(saga));
        break;
    }
}

enum status saga_flow_save(struct saga_batch *b, struct db *db, int64_t tag,
                           struct diag *diag)
{
    struct saga_step_owner *owners;
    size_t count = 0;

    if (b->options.declaration->nsteps == 0)
        return STATUS_OK;
    owners = arena_alloc(&b->arena, b->nslots * sizeof(*owners) + 1);
    for (size_t i = 0; i < b->nslots; i++) {
        const struct saga_slot *slot = &b->slots[i];

        for (const struct saga_alert *a = slot->alerts; a != NULL; a = a->next)
            tell(b, slot, a);
        if (slot->dirty && slot->steps != NULL)
            owners[count++] = (struct saga_step_owner){slot->row.saga_id,
                                                       slot->steps};
    }
    return saga_step_store_save(&b->steps, db, owners, count, b->options.ids,
                                clock_now(b->options.clock), tag, &b->arena,
                                diag);
}

/* --- what a turn asks for ------------------------------------------------- */

static enum status call_script(struct flow *f, struct handler_saga *saga,
                               struct failure *failure, struct diag *diag)
{
    saga->part = f->part;
    saga->of_deadline = f->of_deadline;
    saga->steps = f->steps;
    return saga_batch_call(f->batch, f->slot, f->call, saga, failure, diag);
}

/* What the outbox tells of a step's message, behind what it tells of all. */
static struct text add_metadata(struct arena *arena, struct text metadata,
                                const struct saga_step_row *row,
                                bool compensation)
{
    struct buffer out = BUFFER_EMPTY;
    bool first = metadata.len <= 2;
    struct text kept;

    buffer_append_text(&out,
                       metadata.len < 2
                           ? TEXT_LITERAL("{")
                           : (struct text){metadata.data, metadata.len - 1});
    json_member_text(&out, &first, "step", row->name);
    json_member_string(&out, &first, "kind",
                       compensation ? "compensation" : "command");
    json_member_int64(&out, &first, "round", row->round);
    buffer_append_char(&out, '}');
    kept = arena_copy(arena, buffer_text(&out));
    buffer_free(&out);
    return kept;
}

static enum status publish(struct flow *f, const struct saga_steps_send *send,
                           struct text payload, struct failure *failure,
                           struct diag *diag)
{
    const struct saga_step_row *row = &f->steps->rows[send->row];
    const struct saga_step_message *message = saga_steps_message(f->steps,
                                                                 send);
    struct outgoing_saga saga = {declaration_of(f)->name,
                                 slot_of(f)->row.saga_id};
    struct outgoing outgoing = {
        .route = message->to,
        .type = message->command,
        .payload = payload,
        .event_id = send->compensation ? row->compensation_id : row->command_id,
        .own_id = true,
        .again = send->again,
        .ordering_key = saga.id,
    };
    enum status status;

    outgoing_trace(&outgoing, f->call->message, &saga, &f->batch->arena);
    outgoing.metadata = add_metadata(&f->batch->arena, outgoing.metadata, row,
                                     send->compensation);
    status = effects_publish(f->batch->effects, &outgoing, diag);
    if (status != STATUS_LIMIT && status != STATUS_INVALID)
        return status;
    failure_set(failure, false, "publish", "the message of step '%.*s': %s",
                TEXT_ARGS(row->name), diag->message);
    return STATUS_FAILED;
}

static enum status send(struct flow *f, const struct saga_steps_send *send,
                        struct failure *failure, struct diag *diag)
{
    struct saga_step_row *row = &f->steps->rows[send->row];
    struct handler_saga saga = {
        .function = HANDLER_SAGA_MESSAGE,
        .step = row->step,
        .compensation = send->compensation,
    };
    enum status status;

    if (send->again)
        return publish(f, send, row->message, failure, diag);
    status = call_script(f, &saga, failure, diag);
    if (status != STATUS_OK)
        return status;
    if (row->deadline_at != 0) /* it may have to be sent again */
        row->message = saga.message;
    return publish(f, send, saga.message, failure, diag);
}

/* What the list of deadlines shows of it. */
static struct text write_awaited(struct arena *arena,
                                 const struct saga_step_row *row)
{
    struct buffer out = BUFFER_EMPTY;
    struct text kept;

    buffer_append_string(&out, "{\"step\":");
    json_write_string(&out, row->name);
    buffer_printf(&out, ",\"round\":%d,\"state\":\"%s\"}", row->round,
                  saga_step_state_word(row->state));
    kept = arena_copy(arena, buffer_text(&out));
    buffer_free(&out);
    return kept;
}

static struct saga_deadline_of deadline_of(const struct flow *f)
{
    const struct saga_slot *slot = slot_of(f);

    return (struct saga_deadline_of){
        .saga_id = slot->row.saga_id,
        .instance = slot->row.id,
        .partition = slot->partition,
    };
}

static enum status set_deadline(struct flow *f, bool relative, int64_t at_us,
                                struct diag *diag)
{
    const struct saga_deadline_of of = deadline_of(f);
    const struct outgoing_saga saga = {declaration_of(f)->name, of.saga_id};
    struct saga_step_row *row = saga_steps_awaited(f->steps);
    const struct saga_deadline_set set = {
        .name = TEXT_LITERAL(SAGA_FLOW_DEADLINE),
        .relative = relative,
        .at_us = at_us,
        .payload = write_awaited(&f->batch->arena, row),
        .metadata = outgoing_chain(f->call->message, &saga, &f->batch->arena),
    };

    row->changed = true;
    return saga_deadlines_set(f->batch->deadlines, &of, &set, &row->deadline_at,
                              diag);
}

static enum status move_deadline(struct flow *f, struct diag *diag)
{
    const struct saga_deadline_of of = deadline_of(f);

    if (!f->turn.deadline_changed)
        return STATUS_OK;
    if (f->turn.deadline_at != 0)
        return set_deadline(f, true, f->turn.wait_us, diag);
    saga_deadlines_cancel(f->batch->deadlines, &of,
                          TEXT_LITERAL(SAGA_FLOW_DEADLINE));
    return STATUS_OK;
}

static enum status end(struct flow *f, struct failure *failure,
                       struct diag *diag)
{
    const struct saga_deadline_of of = deadline_of(f);
    struct handler_saga saga = {
        .function = HANDLER_SAGA_END,
        .outcome = f->turn.end == SAGA_STEPS_COMPLETED ? "Completed"
                                                       : "Cancelled",
    };
    enum status status = STATUS_OK;

    if (f->turn.end == SAGA_STEPS_GOES_ON)
        return STATUS_OK;
    if (declaration_of(f)->tells_end)
        status = call_script(f, &saga, failure, diag);
    slot_of(f)->completed = true;
    saga_deadlines_clear(f->batch->deadlines, &of);
    return status;
}

static enum status carry_out(struct flow *f, struct failure *failure,
                             struct diag *diag)
{
    enum status status = STATUS_OK;

    slot_of(f)->dirty = true;
    slot_of(f)->steps = f->steps;
    for (size_t i = 0; status == STATUS_OK && i < f->turn.nsends; i++)
        status = send(f, &f->turn.sends[i], failure, diag);
    if (status == STATUS_OK)
        status = move_deadline(f, diag);
    if (status != STATUS_OK)
        return status;
    keep_alerts(f);
    return end(f, failure, diag);
}

/* --- events --------------------------------------------------------------- */

/* A member of an object that is text, from the arena; empty when it is anything
 * else, and NULL data when it is null or not there. */
static struct text member(struct arena *arena, struct text json,
                          const char *name)
{
    struct buffer scratch = BUFFER_EMPTY;
    struct json_members members;
    struct json_value root, value;
    struct text key, found = TEXT_NONE;

    if (json.data == NULL || json_check(json, NULL, NULL) != STATUS_OK)
        return TEXT_NONE;
    root = json_first(json);
    if (root.kind != JSON_OBJECT)
        return TEXT_NONE;
    members = json_members_of(root);
    while (json_members_next(&members, &scratch, &key, &value)) {
        if (value.kind == JSON_NULL || !text_equal(key, text_of(name)))
            continue;
        found = TEXT_LITERAL("");
        if (value.kind != JSON_STRING)
            break;
        buffer_clear(&scratch);
        json_decode_string(value, &scratch);
        found = arena_copy(arena, buffer_text(&scratch));
        break;
    }
    buffer_free(&scratch);
    return found;
}

static void take_reply(struct flow *f, struct text type)
{
    struct text metadata = f->call->message->metadata;
    struct arena *arena = &f->batch->arena;
    struct text told = member(arena, metadata, "command_id");
    struct saga_steps_reply reply = {.type = type};
    struct uuid command, cause;

    if (uuid_parse(told, &command))
        reply.command_id = &command;
    else if (told.data != NULL)
        return; /* it is of no command of ours */
    if (uuid_parse(member(arena, metadata, "causation_id"), &cause))
        reply.cause = &cause;
    saga_steps_reply(f->steps, &reply, &f->turn);
}

enum status saga_flow_event(struct saga_batch *b, size_t slot,
                            struct handler_call *call,
                            const struct handler_part *part,
                            struct failure *failure, struct diag *diag)
{
    const struct declaration *d = b->options.declaration;
    struct saga_slot *s = &b->slots[slot];
    struct text type = d->types[part->type];
    bool begins = !s->present;
    bool answers = saga_steps_of_type(d->steps, d->nsteps, type) !=
                   SAGA_STEP_GONE;
    struct flow f = {.batch = b, .slot = slot, .call = call, .part = *part};
    struct handler_saga saga = {.function = HANDLER_SAGA_EVENT};
    enum status status;

    if (!begins && (d->starts[part->type] || (s->completed && !answers)))
        return STATUS_OK;
    if (begins)
        saga_batch_begin_instance(b, slot);
    begin(&f);
    if (begins)
        saga_steps_start(f.steps, &f.turn);
    else if (answers)
        take_reply(&f, type);
    if (answers && !f.turn.taken)
        return STATUS_OK;
    status = call_script(&f, &saga, failure, diag);
    return status == STATUS_OK ? carry_out(&f, failure, diag) : status;
}

/* --- deadlines ------------------------------------------------------------ */

enum status saga_flow_deadline(struct saga_batch *b, size_t slot,
                               struct handler_call *call, struct text order,
                               struct failure *failure, struct diag *diag)
{
    struct flow f = {
        .batch = b,
        .slot = slot,
        .call = call,
        .of_deadline = true,
    };
    struct text what = member(&b->arena, order, "operator");
    const struct saga_step_row *row;

    begin(&f);
    if (text_equal(what, TEXT_LITERAL("retry")))
        saga_steps_retry(f.steps, &f.turn);
    else if (text_equal(what, TEXT_LITERAL("confirm")))
        saga_steps_confirm(f.steps, member(&b->arena, order, "step"), &f.turn);
    else
        saga_steps_overdue(f.steps, &f.turn);
    if (f.turn.taken)
        return carry_out(&f, failure, diag);
    row = saga_steps_awaited(f.steps);
    if (row == NULL)
        return STATUS_OK;
    slot_of(&f)->dirty = true; /* its row is gone, and it awaits something */
    slot_of(&f)->steps = f.steps;
    return set_deadline(&f, false, row->deadline_at, diag);
}
