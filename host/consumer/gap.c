#include "consumer/gap.h"

#include "consumer/flight.h"
#include "consumer/standing.h"

bool gap_is_met(const struct consumer *c, int64_t start)
{
    for (int p = 0; start > 0 && p < c->reached.partitions; p++)
        if (leases_hold(&c->leases, p) && c->reached.position[p] < start)
            return true;
    return false;
}

static enum status halt(struct consumer *c, struct diag *diag)
{
    return registry_set_state(c->env->db, c->env->catalog, &c->row,
                              CONSUMER_HALTED, HALT_MISSING_HISTORY,
                              clock_now(c->env->clock), diag);
}

static enum status pass(struct consumer *c, int64_t start, struct diag *diag)
{
    const struct db_value params[] = {db_string(c->row.id),
                                      db_string(c->source), db_integer(start)};

    return db_queue(c->env->db,
                    catalog_sql(c->env->catalog, SQL_CHECKPOINT_ACCEPT_GAP),
                    params, 3, DB_ANY_ROWS, -1, diag);
}

static void tell(const struct consumer *c, int64_t start)
{
    const struct log_about about = {
        .consumer = c->name.name,
        .topic = c->source,
        .position = start,
    };

    if (c->passes_gaps)
        log_write(c->env->log, LOG_WARN, &about,
                  "the topic no longer holds positions up to %lld that were "
                  "not read: goes on behind them, marked as incomplete",
                  (long long)start);
    else
        log_write(c->env->log, LOG_ERROR, &about,
                  "halted with MISSING_HISTORY: the topic no longer holds "
                  "positions up to %lld that were not read; restore the topic, "
                  "or `moontide resume %s --accept` goes on without them",
                  (long long)start, c->name.name);
}

/* What is decided is so for all partitions, whoever applies them. */
static enum status settle(struct consumer *c, int64_t start, bool *settled,
                          struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    struct checkpoints stored;
    enum status status;

    checkpoints_init(&stored, c->stored.partitions);
    status = checkpoint_lock(env->db, env->catalog, c->row.id, c->source,
                             &stored, &lock, diag);
    /* otherwise somebody else has settled it, or has done something else */
    *settled = status == STATUS_OK && lock.state == CONSUMER_RUNNING &&
               lock.epoch == c->row.epoch && standing_is_at(c, &stored);
    checkpoints_free(&stored);
    if (!*settled)
        return status;
    return c->passes_gaps ? pass(c, start, diag) : halt(c, diag);
}

enum status gap_settle(struct consumer *c, int64_t start, struct diag *diag)
{
    bool settled = false, undone;
    enum status status = flight_settle(c->env->flight, &undone, diag);

    if (status == STATUS_OK)
        status = db_begin(c->env->db, diag);
    if (status != STATUS_OK)
        return status;
    status = settle(c, start, &settled, diag);
    if (status == STATUS_OK && settled)
        status = db_commit(c->env->db, NULL, diag);
    db_rollback(c->env->db);
    if (status != STATUS_OK)
        return status;
    if (settled)
        tell(c, start);
    return consumer_reload(c, diag);
}
