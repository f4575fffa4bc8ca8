#include "consumer/standing.h"

#include "consumer/apply.h"
#include "consumer/careful.h"
#include "consumer/fire.h"
#include "consumer/flight.h"

/* Over empty stretches a checkpoint is saved no more often than this. */
#define SAVE_EVERY_US (60 * CLOCK_SECOND)

static void copy_positions(struct checkpoints *to,
                           const struct checkpoints *from)
{
    memcpy(to->position, from->position,
           (size_t)from->partitions * sizeof(*from->position));
}

bool standing_is_at(const struct consumer *c, const struct checkpoints *other)
{
    for (size_t i = 0; i < c->leases.count; i++) {
        int64_t p = c->leases.mine[i];

        if (other->position[p] != c->stored.position[p])
            return false;
    }
    return true;
}

void standing_begin_page(struct consumer *c)
{
    copy_positions(&c->before, &c->stored);
}

void standing_forget_last_batch(struct consumer *c)
{
    copy_positions(&c->stored, &c->before);
    copy_positions(&c->reached, &c->before);
}

/* Takes what undelivered messages hold into memory; needs a transaction. */
static enum status take_holds(struct consumer *c, struct diag *diag)
{
    enum status status = STATUS_OK;

    undelivered_keys_clear(&c->held);
    if (c->retries.any)
        status = undelivered_keys_read(c->env->db, c->env->catalog, c->row.id,
                                       c->source, &c->held, diag);
    c->held_known = status == STATUS_OK;
    return status;
}

enum status standing_take(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    enum status status = checkpoint_read(env->db, env->catalog, c->row.id,
                                         c->source, &c->stored, &lock, diag);

    if (status != STATUS_OK)
        return status;
    copy_positions(&c->reached, &c->stored);
    c->row.state = lock.state;
    c->row.halt_reason = lock.halt_reason;
    c->row.epoch = lock.epoch;
    c->replay_through = lock.replay_through;
    c->incomplete = lock.incomplete;
    buffer_clear(&c->swept);
    c->finish_at = 0;
    event_page_forget(&c->page);
    /* where it has not moved on, it met its conflicts over the same messages:
     * they count, also when one of them has cost the connection */
    if (!standing_is_at(c, &c->before))
        c->conflicts = 0;
    copy_positions(&c->before, &c->stored);
    c->quiet = c->careful = false;
    fire_look_now(c);
    c->retries = (struct consumer_retries){
        .any = lock.undelivered,
        .singly = c->retries.singly,
        .conflicts = c->retries.conflicts,
    };
    return take_holds(c, diag);
}

enum status standing_read_holds(struct consumer *c, struct diag *diag)
{
    enum status status = db_begin(c->env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = take_holds(c, diag);
    db_rollback(c->env->db);
    return status;
}

/* Whether some position was reached over an empty stretch and not saved, where
 * it is stored below this one. */
static bool has_unsaved_below(const struct consumer *c, int64_t position)
{
    for (int p = 0; p < c->reached.partitions; p++)
        if (leases_hold(&c->leases, p) &&
            c->stored.position[p] < c->reached.position[p] &&
            c->stored.position[p] < position)
            return true;
    return false;
}

static bool has_unsaved(const struct consumer *c)
{
    return has_unsaved_below(c, INT64_MAX);
}

bool standing_save_is_due(const struct consumer *c, int64_t topic_start)
{
    if (consumer_time(c->env) - c->saved_at >= SAVE_EVERY_US)
        return has_unsaved(c);
    /* a topic that has lost nothing begins behind one that never saved */
    return topic_start > 0 && has_unsaved_below(c, topic_start);
}

/* Partitions of this process that were reached at `position` but not saved
 * there. */
static size_t unsaved_at(const struct consumer *c, int64_t position,
                         int64_t *partitions)
{
    size_t count = 0;

    for (int p = 0; p < c->reached.partitions; p++)
        if (leases_hold(&c->leases, p) && c->reached.position[p] == position &&
            c->stored.position[p] < position)
            partitions[count++] = p;
    return count;
}

enum status standing_save(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    int64_t *partitions;
    struct checkpoint_lock lock = {.epoch = 0};
    bool run, undone;
    enum status status = STATUS_OK;

    if (flight_is_of(c))
        status = flight_settle(c->env->flight, &undone, diag);
    if (status == STATUS_OK)
        status = careful_end(c, diag);
    if (status == STATUS_OK)
        status = fire_end(c, diag);
    if (status == STATUS_FENCED)
        return consumer_reload(c, diag);
    if (status != STATUS_OK)
        return status;
    if (!has_unsaved(c) || !consumer_runs(c))
        return STATUS_OK;
    status = apply_begin(c, &run, &lock, diag);
    if (status == STATUS_FENCED) /* whoever moved them saves them, too */
        return consumer_reload(c, diag);
    if (status != STATUS_OK || !run)
        return status;
    arena_reset(&c->arena);
    partitions = arena_alloc(&c->arena, (size_t)c->reached.partitions *
                                            sizeof(*partitions));
    for (int p = 0; status == STATUS_OK && p < c->reached.partitions; p++) {
        size_t count = unsaved_at(c, c->reached.position[p], partitions);

        /* each group once: by its lowest partition */
        if (count > 0 && partitions[0] == p)
            status = checkpoint_advance(env->db, env->catalog, c->row.id,
                                        c->source, partitions, count,
                                        c->reached.position[p], diag);
    }
    if (status == STATUS_OK)
        status = checkpoint_still(env->db, env->catalog, c->row.id,
                                  c->row.epoch, c->topic_on, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    copy_positions(&c->stored, &c->reached);
    c->saved_at = consumer_time(c->env);
    return STATUS_OK;
}
