#include "consumer/declared.h"

/* Behind the checkpoints, as every change of state: not beside an operator's
 * or under a batch that runs. */
static enum status set_state(struct consumer *c, enum consumer_state state,
                             enum halt_reason reason, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    enum status status = checkpoint_lock(env->db, env->catalog, c->row.id,
                                         c->source, &c->stored, &lock, diag);

    if (status != STATUS_OK)
        return status;
    if (lock.state != c->row.state || lock.halt_reason != c->row.halt_reason)
        return diag_set(diag, STATUS_CONFLICT,
                        "the state of %s '%s' was changed at the same time",
                        c->name.type, c->name.name);
    c->row.state = state;
    c->row.halt_reason = reason;
    return registry_set_state(env->db, env->catalog, &c->row, state, reason,
                              clock_now(env->clock), diag);
}

static bool is_halted_by_change(const struct consumer *c)
{
    return c->row.state == CONSUMER_HALTED &&
           c->row.halt_reason == HALT_DECLARATION_CHANGED;
}

/* A consumer that would run, or was halted by such a change, meets one. */
static enum status changed(struct consumer *c, struct declared_outcome *outcome,
                           struct diag *diag)
{
    c->asks_rebuild = c->rebuild_on_change;
    outcome->kind = c->rebuild_on_change ? DECLARED_REBUILDING
                                         : DECLARED_HALTED;
    if (is_halted_by_change(c))
        return STATUS_OK;
    return set_state(c, CONSUMER_HALTED, HALT_DECLARATION_CHANGED, diag);
}

enum status declared_check(struct consumer *c, bool starting,
                           struct declared_outcome *outcome, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    bool halted = is_halted_by_change(c);

    *outcome = (struct declared_outcome){.kind = DECLARED_NOTHING};
    c->asks_rebuild = false;
    if (c->declared == NULL)
        return STATUS_OK;
    outcome->change = fingerprint_compare(registry_fingerprint(&c->row),
                                          c->declared);
    if (outcome->change.verdict == FINGERPRINT_NEW)
        return registry_fingerprint_accept(env->db, env->catalog, &c->row,
                                           c->declared, diag);
    if (c->row.state != CONSUMER_RUNNING && !(halted && starting))
        return STATUS_OK;
    if (outcome->change.verdict == FINGERPRINT_CHANGED && c->takes_over &&
        !c->rebuild_on_change && !halted) {
        outcome->kind = DECLARED_ACCEPTED;
        return registry_fingerprint_accept(env->db, env->catalog, &c->row,
                                           c->declared, diag);
    }
    if (outcome->change.verdict == FINGERPRINT_CHANGED ||
        (outcome->change.verdict == FINGERPRINT_REBUILD_DUE &&
         c->rebuild_on_change))
        return changed(c, outcome, diag);
    if (!halted)
        return STATUS_OK;
    outcome->kind = DECLARED_RELEASED;
    return set_state(c, CONSUMER_RUNNING, HALT_NONE, diag);
}

bool declared_halts(const struct consumer_row *row,
                    const struct fingerprint *declared, bool rebuild_on_change,
                    struct fingerprint_change *change)
{
    *change = fingerprint_compare(registry_fingerprint(row), declared);
    return row->exists && row->state == CONSUMER_RUNNING &&
           change->verdict == FINGERPRINT_CHANGED && !rebuild_on_change;
}

enum status declared_overtaken(const struct consumer *c,
                               const struct consumer_row *row,
                               struct diag *diag)
{
    struct fingerprint_change change;
    struct buffer what = BUFFER_EMPTY;

    if (c->declared == NULL ||
        text_equal(registry_fingerprint(&c->row), registry_fingerprint(row)))
        return STATUS_OK;
    change = fingerprint_compare(registry_fingerprint(row), c->declared);
    if (change.verdict == FINGERPRINT_EQUAL ||
        change.verdict == FINGERPRINT_NEW)
        return STATUS_OK;
    fingerprint_describe(&change, &what);
    diag_set(diag, STATUS_REFUSED,
             "%s '%s' goes by another declaration now than this host has "
             "loaded (%s differ): `moontide reload`, or start this host again",
             c->name.type, c->name.name, what.data);
    buffer_free(&what);
    return STATUS_REFUSED;
}

void declared_tell_halted(const struct consumer *c)
{
    if (!is_halted_by_change(c))
        return;
    log_write(c->env->log, LOG_WARN,
              &(struct log_about){.consumer = c->name.name, .topic = c->source},
              "was halted with DECLARATION_CHANGED by a host that has another "
              "declaration of it; give all hosts the same scripts, then "
              "`moontide rebuild %s`, or `moontide resume %s --accept` to keep "
              "what is there",
              c->name.name, c->name.name);
}

void declared_tell(const struct consumer *c,
                   const struct declared_outcome *outcome)
{
    const struct log_about about = {.consumer = c->name.name,
                                    .topic = c->source};
    struct buffer what = BUFFER_EMPTY;

    buffer_append_string(&what, "");
    fingerprint_describe(&outcome->change, &what);
    switch (outcome->kind) {
    case DECLARED_NOTHING:
        break;
    case DECLARED_HALTED:
        log_write(c->env->log, LOG_ERROR, &about,
                  "halted with DECLARATION_CHANGED: %s changed since its read "
                  "models were derived; `moontide rebuild %s` derives them "
                  "anew, `moontide resume %s --accept` keeps them and goes on",
                  what.data, c->name.name, c->name.name);
        break;
    case DECLARED_RELEASED:
        log_write(c->env->log, LOG_INFO, &about,
                  "is declared as before again and goes on");
        break;
    case DECLARED_ACCEPTED:
        log_write(c->env->log, LOG_WARN, &about,
                  "goes on by another declaration, as was asked for: %s "
                  "changed since its read models were derived, and they are "
                  "kept as they are",
                  what.data);
        break;
    case DECLARED_REBUILDING:
        log_write(c->env->log, LOG_INFO, &about,
                  "is rebuilt, as on_change says: %s changed since its read "
                  "models were derived",
                  what.data);
        break;
    }
    buffer_free(&what);
}

static enum status check_fits(const struct consumer *c, struct diag *diag)
{
    const struct applier *applier = &c->applier;

    return applier->ops->fits == NULL
               ? STATUS_OK
               : applier->ops->fits(applier->self, c->env->db, diag);
}

enum status declared_check_again(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct declared_outcome outcome;
    struct consumer_row row;
    enum status status = db_begin(env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = registry_read(env->db, env->catalog, &c->name, &row, diag);
    if (status == STATUS_OK)
        status = declared_overtaken(c, &row, diag);
    if (status == STATUS_OK)
        status = check_fits(c, diag);
    if (status == STATUS_OK) {
        c->row = row;
        status = declared_check(c, false, &outcome, diag);
    }
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    declared_tell(c, &outcome);
    c->unchecked = false;
    return STATUS_OK;
}
