#include "consumer/flight.h"

#include "consumer/apply.h"

#include <assert.h>

bool flight_is_of(const struct consumer *c)
{
    return c->env->flight != NULL && c->env->flight->owner == c;
}

/* Where the first stored checkpoint stands; not where each does. */
static int64_t stored_at(const struct consumer *c)
{
    return c->stored.position[c->leases.mine[0]];
}

/* What was read over without a message for this process is not stored, but as
 * one position for all. */
static bool all_stand_together(const struct consumer *c)
{
    for (size_t i = 1; i < c->leases.count; i++)
        if (c->stored.position[c->leases.mine[i]] != stored_at(c))
            return false;
    return c->leases.count > 0;
}

bool flight_may(const struct consumer *c, const struct poll *poll)
{
    return c->env->flight != NULL &&
           (db_abilities(c->env->db) & DB_CAN_LEAVE) != 0 && c->quiet &&
           !c->careful && c->singly == 0 && c->conflicts == 0 &&
           poll->npartitions == c->leases.count && all_stand_together(c);
}

enum status flight_pass(struct consumer *c, int64_t through, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct leases *leases = &c->leases;
    const struct db_value params[] = {
        db_string(c->row.id),
        db_string(c->source),
        db_integers(leases->mine, leases->count),
        db_integers(leases->generations, leases->count),
        db_string(env->instance),
        db_integer(stored_at(c)),
        db_integer(through),
        db_integer(c->row.epoch),
        db_boolean(c->retries.any),
        db_boolean(c->topic_on)};
    /* what a statement compares is as it was when the statement began, so the
     * waiting for a lock must be over by then */
    enum status status = db_queue(
        env->db, catalog_sql(env->catalog, SQL_CHECKPOINT_TAKE), params, 3,
        DB_ANY_ROWS, -1, diag);

    if (status != STATUS_OK)
        return status;
    return db_queue(env->db, catalog_sql(env->catalog, SQL_CHECKPOINT_PASS),
                    params, 10, (int64_t)leases->count, -1, diag);
}

static void move_to(struct consumer *c, int64_t stored, int64_t reached)
{
    for (size_t i = 0; i < c->leases.count; i++) {
        int64_t p = c->leases.mine[i];

        c->stored.position[p] = stored;
        c->reached.position[p] = reached;
    }
}

enum status flight_send(struct consumer *c, const struct poll *poll,
                        int64_t through, struct diag *diag)
{
    struct flight *flight = c->env->flight;
    struct db *db = c->env->db;
    int64_t sent_at = clock_monotonic();
    enum status status;

    assert(flight->owner == NULL);
    db_deadline(db, sent_at + c->env->time_limit);
    status = db_commit_begin(db, diag);
    db_deadline(db, 0);
    if (status != STATUS_OK)
        return status;
    *flight = (struct flight){
        .owner = c,
        .stored = stored_at(c),
        .after = poll->after,
        .page = c->page.count,
        .sent_at = sent_at,
    };
    for (size_t i = 0; i < c->page.count; i++)
        flight->messages += c->page.messages[i].position <= through;
    move_to(c, through, through);
    return STATUS_OK;
}

enum status flight_settle(struct flight *flight, bool *undone,
                          struct diag *diag)
{
    struct consumer *c;
    enum status status;

    *undone = false;
    if (flight == NULL || flight->owner == NULL)
        return STATUS_OK;
    c = flight->owner;
    flight->owner = NULL;
    status = db_commit_end(c->env->db, NULL, diag);
    if (status == STATUS_OK) {
        c->applied += (int64_t)flight->messages;
        apply_committed(c);
        consumer_adapt(c, flight->page, clock_monotonic() - flight->sent_at);
        return STATUS_OK;
    }
    *undone = true;
    move_to(c, flight->stored, flight->after);
    c->quiet = false;
    /* somebody's doing: find out whose, or whether it was moved or stopped */
    c->careful = applier_is_fault(status);
    return c->careful || status == STATUS_CONFLICT ? STATUS_OK : status;
}
