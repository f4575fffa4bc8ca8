#include "model/listener.h"

#include "base/memory.h"
#include "model/effects_unit.h"
#include "model/sql_projection.h"

struct listener {
    struct listener_options options;
    struct effects *effects;
    struct sql_projection *handlers;
    struct applier inner; /* of `handlers` */
};

static enum status listener_begin(void *self, struct db *db,
                                  const struct unit *units, size_t count,
                                  int64_t replay_epoch, struct diag *diag)
{
    struct listener *l = self;

    effects_batch_begin(l->effects);
    return l->inner.ops->begin(l->inner.self, db, units, count, replay_epoch,
                               diag);
}

static enum status listener_apply(void *self, struct db *db, size_t unit,
                                  enum apply_verdict *verdict,
                                  struct failure *failure, struct diag *diag)
{
    struct listener *l = self;
    enum status status;

    effects_call_begin(l->effects);
    status = l->inner.ops->apply(l->inner.self, db, unit, verdict, failure,
                                 diag);
    if (status == STATUS_OK && *verdict == APPLY_DONE &&
        effects_unit_check(l->effects, &l->options.handler, failure) ==
            STATUS_FAILED)
        *verdict = APPLY_STUCK; /* what it queued is the batch's already */
    if (status == STATUS_OK && *verdict != APPLY_DONE)
        effects_call_undo(l->effects);
    return status;
}

static enum status listener_finish(void *self, struct db *db,
                                   struct failure *failure, struct diag *diag)
{
    struct listener *l = self;
    enum status status = l->inner.ops->finish(l->inner.self, db, failure, diag);

    if (status != STATUS_OK)
        return status;
    return effects_unit_send(l->effects, db, l->options.time_limit,
                             l->inner.ops->where, l->inner.self, failure, diag);
}

static enum status listener_keys(void *self, const struct message *message,
                                 int attempt, applier_key_fn emit, void *arg,
                                 struct failure *failure)
{
    struct listener *l = self;

    return l->inner.ops->keys(l->inner.self, message, attempt, emit, arg,
                              failure);
}

static enum status listener_on_error(void *self, const struct unit *unit,
                                     int failures,
                                     const struct failure *failure,
                                     enum error_policy *policy,
                                     struct failure *refused)
{
    struct listener *l = self;

    return l->inner.ops->on_error(l->inner.self, unit, failures, failure,
                                  policy, refused);
}

static const char *listener_where(void *self, int64_t tag)
{
    struct listener *l = self;

    return l->inner.ops->where(l->inner.self, tag);
}

static void listener_end(void *self)
{
    struct listener *l = self;

    l->inner.ops->end(l->inner.self);
}

/* Without reset, sweep and remove: a listener is never rebuilt. */
static const struct applier_ops listener_ops = {
    .keys = listener_keys,
    .begin = listener_begin,
    .apply = listener_apply,
    .finish = listener_finish,
    .on_error = listener_on_error,
    .where = listener_where,
    .end = listener_end,
};

struct listener *listener_new(const struct listener_options *options)
{
    struct listener *l = mem_alloc(sizeof(*l));

    l->options = *options;
    l->effects = effects_new(&options->effects);
    l->handlers = sql_projection_new(options->declaration, options->handler,
                                     options->db, l->effects);
    l->inner = sql_projection_applier(l->handlers);
    return l;
}

void listener_free(struct listener *l)
{
    if (l == NULL)
        return;
    sql_projection_free(l->handlers);
    effects_free(l->effects);
    mem_free(l);
}

struct applier listener_applier(struct listener *l)
{
    return (struct applier){.ops = &listener_ops, .self = l};
}
