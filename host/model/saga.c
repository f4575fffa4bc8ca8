#include "model/saga.h"

#include "base/memory.h"
#include "consumer/deadline.h"
#include "model/handler_unit.h"
#include "model/saga_declared.h"
#include "model/saga_flow.h"

struct saga {
    struct saga_batch batch;
    /* the page in hand */
    const struct unit *units;
    size_t *unit_slot; /* slot of each unit */
    size_t unit_capacity;
};

static const struct declaration *declaration_of(const struct saga *s)
{
    return s->batch.options.declaration;
}

static enum status saga_fits(void *self, struct db *db, struct diag *diag)
{
    const struct saga *s = self;

    return saga_declared_check(db, s->batch.options.catalog, declaration_of(s),
                               diag);
}

static enum status saga_begin(void *self, struct db *db,
                              const struct unit *units, size_t count,
                              int64_t replay_epoch, struct diag *diag)
{
    struct saga *s = self;

    (void)replay_epoch; /* sagas are not rebuilt */
    s->units = units;
    if (count > s->unit_capacity) {
        s->unit_capacity = count;
        s->unit_slot = mem_grow(s->unit_slot, count, sizeof(*s->unit_slot));
    }
    saga_batch_begin(&s->batch);
    for (size_t i = 0; i < count; i++)
        s->unit_slot[i] = saga_batch_add(&s->batch, units[i].key,
                                         units[i].partition);
    return saga_batch_load(&s->batch, db, diag);
}

/* --- one event --------------------------------------------------------------
 */

enum admission {
    ADMIT,  /* its handler runs */
    PASS,   /* it is none of the saga's business */
    UNKNOWN /* there is no saga, and it begins none */
};

static enum admission admit(const struct declaration *d, size_t type,
                            const struct saga_slot *slot)
{
    if (slot->completed)
        return PASS;
    if (slot->present || d->starts[type])
        return ADMIT;
    return d->unknown == SAGA_UNKNOWN_IGNORE ? PASS : UNKNOWN;
}

static enum status refuse(const struct declaration *d, size_t type,
                          const struct saga_slot *slot, struct failure *failure)
{
    bool dead = d->unknown == SAGA_UNKNOWN_DEAD_LETTER;

    failure_set(failure, dead, "unknown",
                "%s:%d: there is no saga '%.*s' to take %.*s, and this type "
                "begins none (unknown = \"%s\")",
                d->file, d->line, TEXT_ARGS(slot->row.saga_id),
                TEXT_ARGS(d->types[type]),
                declaration_unknown_word(d->unknown));
    failure->dead_letter = dead;
    return STATUS_FAILED;
}

static enum status work_event(void *arg, struct saga_batch *batch, size_t slot,
                              struct failure *failure, struct diag *diag)
{
    const struct unit *unit = arg;
    const struct handler *handler = &batch->options.handler;
    const struct declaration *d = batch->options.declaration;
    struct handler_call call = {
        .declaration = d,
        .message = unit->message,
        .key = unit->key,
        .partition = unit->partition,
        .attempt = unit->attempt,
    };
    struct handler_part *parts;
    size_t count;
    enum status status = handler->ops->saga_parts(
        handler->code, &call, &batch->arena, &parts, &count, failure);

    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct handler_saga saga = {
            .function = HANDLER_SAGA_EVENT,
            .part = parts[i],
        };

        if (d->nsteps > 0 &&
            (batch->slots[slot].present || d->starts[parts[i].type])) {
            status = saga_flow_event(batch, slot, &call, &parts[i], failure,
                                     diag);
            continue;
        }
        switch (admit(d, parts[i].type, &batch->slots[slot])) {
        case PASS:
            break;
        case UNKNOWN:
            status = refuse(d, parts[i].type, &batch->slots[slot], failure);
            break;
        case ADMIT:
            status = saga_batch_call(batch, slot, &call, &saga, failure, diag);
            break;
        }
    }
    return status;
}

/* --- one deadline ----------------------------------------------------------
 */

/* Another deadline of the saga, fired in this very transaction, may have moved
 * it or taken it back. Only a saga whose handler has run has changed any. */
static bool is_outdated(const struct saga_batch *batch,
                        const struct saga_slot *slot,
                        const struct deadline *deadline)
{
    return slot->dirty &&
           saga_deadlines_changed(batch->deadlines, deadline->saga_id,
                                  deadline->name);
}

/* Its row goes, whatever becomes of it: of a saga that has ended, or that is
 * another one by now, it is of no use. */
static enum status work_deadline(void *arg, struct saga_batch *batch,
                                 size_t slot, struct failure *failure,
                                 struct diag *diag)
{
    const struct unit *unit = arg;
    const struct deadline *deadline = unit->deadline;
    const struct declaration *d = batch->options.declaration;
    const struct saga_slot *s = &batch->slots[slot];
    struct handler_call call = {
        .message = unit->message,
        .attempt = unit->attempt,
    };
    struct handler_saga saga = {
        .function = HANDLER_SAGA_DEADLINE,
        .payload = deadline->payload,
        .due_at = deadline->due_at,
    };

    saga_deadlines_fired(batch->deadlines, &deadline->id);
    if (!s->present || !uuid_equal(&s->row.id, &deadline->instance))
        return STATUS_OK;
    if (is_outdated(batch, s, deadline))
        return STATUS_OK;
    if (d->nsteps > 0 &&
        text_equal(deadline->name, TEXT_LITERAL(SAGA_FLOW_DEADLINE)))
        return saga_flow_deadline(batch, slot, &call, unit->message->payload,
                                  failure, diag);
    if (s->completed)
        return STATUS_OK;
    while (saga.deadline < d->ndeadlines &&
           !text_equal(d->deadlines[saga.deadline], deadline->name))
        saga.deadline++;
    if (saga.deadline < d->ndeadlines)
        return saga_batch_call(batch, slot, &call, &saga, failure, diag);
    failure_set(failure, false, "error",
                "%s:%d: the saga has no handler for its deadline '%.*s'; it "
                "was set by an earlier version of the script",
                d->file, d->line, TEXT_ARGS(deadline->name));
    return STATUS_FAILED;
}

static enum status saga_apply(void *self, struct db *db, size_t unit,
                              enum apply_verdict *verdict,
                              struct failure *failure, struct diag *diag)
{
    struct saga *s = self;

    return saga_batch_run(&s->batch, db, s->unit_slot[unit],
                          s->units[unit].deadline != NULL ? work_deadline
                                                          : work_event,
                          (void *)&s->units[unit], verdict, failure, diag);
}

/* --- the rest ---------------------------------------------------------------
 */

static enum status saga_finish(void *self, struct db *db,
                               struct failure *failure, struct diag *diag)
{
    struct saga *s = self;

    return saga_batch_finish(&s->batch, db, failure, diag);
}

static enum status saga_keys(void *self, const struct message *message,
                             int attempt, applier_key_fn emit, void *arg,
                             struct failure *failure)
{
    struct saga *s = self;

    return handler_unit_keys(&s->batch.options.handler, declaration_of(s),
                             message, attempt, emit, arg, failure);
}

static enum status saga_on_error(void *self, const struct unit *unit,
                                 int failures, const struct failure *failure,
                                 enum error_policy *policy,
                                 struct failure *refused)
{
    struct saga *s = self;

    return handler_unit_on_error(&s->batch.options.handler, declaration_of(s),
                                 unit, failures, failure, policy, refused);
}

static int64_t saga_earliest(void *self)
{
    struct saga *s = self;

    return saga_deadlines_earliest(s->batch.deadlines);
}

static const char *saga_where(void *self, int64_t tag)
{
    struct saga *s = self;

    return saga_batch_where(&s->batch, tag);
}

static void saga_end(void *self)
{
    struct saga *s = self;

    s->units = NULL;
    saga_batch_end(&s->batch);
}

/* Without reset, sweep and remove: a saga is never rebuilt. */
static const struct applier_ops saga_ops = {
    .fits = saga_fits,
    .keys = saga_keys,
    .begin = saga_begin,
    .apply = saga_apply,
    .finish = saga_finish,
    .on_error = saga_on_error,
    .earliest = saga_earliest,
    .where = saga_where,
    .end = saga_end,
};

struct saga *saga_new(const struct saga_batch_options *options)
{
    struct saga *s = mem_alloc(sizeof(*s));

    saga_batch_init(&s->batch, options);
    return s;
}

void saga_free(struct saga *s)
{
    if (s == NULL)
        return;
    saga_batch_free(&s->batch);
    mem_free(s->unit_slot);
    mem_free(s);
}

struct applier saga_applier(struct saga *s)
{
    return (struct applier){.ops = &saga_ops, .self = s};
}
