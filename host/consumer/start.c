#include "consumer/start.h"

#include "consumer/deadline.h"
#include "consumer/declared.h"
#include "consumer/standing.h"

/* How long a start that met another one is tried again. */
#define START_FOR_US (2 * CLOCK_SECOND)

/* A start gives what halted the consumer a fresh budget (design 3). */
static enum status revive(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    enum status status = undelivered_revive(env->db, env->catalog, c->row.id,
                                            diag);

    if (status == STATUS_OK)
        status = registry_set_state(env->db, env->catalog, &c->row,
                                    CONSUMER_RUNNING, HALT_NONE,
                                    clock_now(env->clock), diag);
    if (status == STATUS_OK) {
        c->row.state = CONSUMER_RUNNING;
        c->row.halt_reason = HALT_NONE;
    }
    return status;
}

/* What is there already is not for it. Whatever may still become visible at a
 * lower position is. */
static enum status begin_at(struct consumer *c, int64_t end, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct db_value params[] = {db_string(c->row.id),
                                      db_string(c->source), db_integer(end)};

    return db_execute(env->db, catalog_sql(env->catalog, SQL_CHECKPOINT_BEGIN),
                      params, 3, NULL, diag);
}

static enum status start_once(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct declared_outcome outcome;
    int64_t end = 0, now;
    enum status status = deadline_clock(env->db, env->clock, &now, diag);

    if (status == STATUS_OK && c->starts_now)
        status = high_water_mark_look(env->db, env->catalog, c->source, &end,
                                      diag);
    if (status == STATUS_OK)
        status = db_begin(env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = registry_subscribe(env->db, env->catalog, &c->name, c->source,
                                env->partitions, env->ids,
                                clock_now(env->clock), &c->row, diag);
    if (status == STATUS_OK && c->starts_now)
        status = begin_at(c, end, diag);
    if (status == STATUS_OK && c->row.state == CONSUMER_HALTED &&
        c->row.halt_reason == HALT_APPLY_ERROR && !c->keeps_halt)
        status = revive(c, diag);
    if (status == STATUS_OK)
        status = declared_check(c, true, &outcome, diag);
    if (status == STATUS_OK)
        status = standing_take(c, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    if (status != STATUS_OK)
        db_rollback(env->db);
    else
        declared_tell(c, &outcome);
    return status;
}

/* Hosts that start together meet in the same rows, and one of them may have to
 * do it again. What does not fit is this consumer's trouble and no other's, so
 * it is found before the first batch, and not here. */
enum status start_consumer(struct consumer *c, struct diag *diag)
{
    int64_t end = clock_monotonic() + START_FOR_US;
    enum status status;

    do {
        status = start_once(c, diag);
    } while (status == STATUS_CONFLICT && clock_monotonic() < end);
    if (status != STATUS_OK)
        return status;
    c->takes_over = false;
    c->unchecked |= c->applier.ops->fits != NULL;
    return STATUS_OK;
}

enum status start_open(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    enum status status = db_begin(env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = registry_read(env->db, env->catalog, &c->name, &c->row, diag);
    if (status == STATUS_OK && !c->row.exists)
        status = diag_set(
            diag, STATUS_REFUSED,
            "%s '%s' is declared, but no host has run it yet, or not "
            "since it was unsubscribed",
            c->name.type, c->name.name);
    if (status == STATUS_OK)
        status = standing_take(c, diag);
    db_rollback(env->db);
    return status;
}
