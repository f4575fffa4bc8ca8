#include "consumer/consumer.h"

#include "base/memory.h"
#include "consumer/apply.h"
#include "consumer/careful.h"
#include "consumer/declared.h"
#include "consumer/fire.h"
#include "consumer/flight.h"
#include "consumer/gap.h"
#include "consumer/poll.h"
#include "consumer/rebuild.h"
#include "consumer/retry_turn.h"
#include "consumer/standing.h"

#include <assert.h>

/* A processing transaction holds locks, so it is kept below 50 ms: pages grow
 * as long as they take no longer than this. */
#define TARGET_US (40 * CLOCK_SECOND / 1000)

/* A replay locks rows that no other work waits for, unless the database lets
 * one program write at a time: the more of its messages go together, the fewer
 * times a read model is written. */
#define REPLAY_TARGET_US (100 * CLOCK_SECOND / 1000)

/* Messages of the first page, when nothing is known of what they cost. */
#define FIRST_LIMIT 500

/* More than any clock_offset, so that no interval begins below zero. */
#define TIME_ORIGIN_US (200 * INT64_C(365) * 24 * 3600 * CLOCK_SECOND)

int64_t consumer_time(const struct consumer_env *env)
{
    return TIME_ORIGIN_US + clock_monotonic() +
           (env->clock != NULL ? env->clock->offset_us : 0);
}

int64_t consumer_clock(const struct consumer_env *env)
{
    int64_t now;

    if (!db_clock_known(env->db, &now))
        return clock_now(env->clock);
    return clock_shift(env->clock, now);
}

void consumer_init(struct consumer *c, const struct consumer_env *env,
                   const struct consumer_name *name, struct topic *topic,
                   const struct event_filter *filter, bool own_key,
                   const struct failure_policy *policy,
                   const struct applier *applier)
{
    assert(!policy->decides || applier->ops->on_error != NULL);
    *c = (struct consumer){
        .env = env,
        .name = *name,
        .topic = topic,
        .source = topic_name(topic),
        .filter = *filter,
        .own_key = own_key,
        .policy = *policy,
        .applier = *applier,
        .limit = env->batch < FIRST_LIMIT ? env->batch : FIRST_LIMIT,
        .saved_at = consumer_time(env),
        .replay_through = CHECKPOINT_NONE,
    };
    leases_init(&c->leases, env->partitions);
    c->careful_at = mem_grow(NULL, (size_t)env->partitions,
                             sizeof(*c->careful_at));
    for (int i = 0; i < env->partitions; i++)
        c->careful_at[i] = (struct careful_partition){CHECKPOINT_NONE, false};
    checkpoints_init(&c->stored, env->partitions);
    checkpoints_init(&c->reached, env->partitions);
    checkpoints_init(&c->before, env->partitions);
    undelivered_keys_init(&c->held, env->partitions);
    undelivered_keys_init(&c->newly, env->partitions);
}

void consumer_free(struct consumer *c)
{
    leases_free(&c->leases);
    mem_free(c->careful_at);
    buffer_free(&c->counted.key);
    checkpoints_free(&c->stored);
    checkpoints_free(&c->reached);
    checkpoints_free(&c->before);
    event_page_free(&c->page);
    mem_free(c->units);
    mem_free(c->entries);
    mem_free(c->skipping);
    buffer_free(&c->swept);
    undelivered_keys_free(&c->held);
    undelivered_keys_free(&c->newly);
    skips_free(&c->skips);
    arena_free(&c->arena);
}

void consumer_declare(struct consumer *c, const struct fingerprint *declared,
                      bool rebuild_on_change)
{
    c->declared = declared;
    c->rebuild_on_change = rebuild_on_change;
}

/* What was taken over from one that had lapsed begins carefully; what was lost
 * is somebody else's to be careful with. */
static void take_leases(struct consumer *c)
{
    for (int p = 0; c->leases.changed && p < c->leases.partitions; p++) {
        if (!leases_hold(&c->leases, p))
            c->careful_at[p] = (struct careful_partition){CHECKPOINT_NONE,
                                                          false};
        else
            c->unchecked |= c->applier.ops->fits != NULL;
        if (leases_hold(&c->leases, p) && c->leases.taken_over[p]) {
            careful_begin(c, p);
            fire_careful(c);
        }
        c->leases.taken_over[p] = false;
    }
    if (!leases_hold(&c->leases, c->counted.partition))
        c->counted.position = 0; /* it is as it is */
    c->leases.changed = false;
}

enum status consumer_reload(struct consumer *c, struct diag *diag)
{
    bool ran = consumer_runs(c);
    int64_t epoch = c->row.epoch;
    enum status status;
    bool undone;

    /* what became of it is read from the database in any case */
    if (flight_is_of(c))
        (void)!flight_settle(c->env->flight, &undone, NULL);
    status = db_begin(c->env->db, diag);
    if (status != STATUS_OK)
        return status;
    status = standing_take(c, diag);
    db_rollback(c->env->db);
    if (status != STATUS_OK)
        return status;
    take_leases(c);
    if (ran)
        declared_tell_halted(c);
    if (!ran || c->row.epoch != epoch)
        c->unchecked = true;
    return STATUS_OK;
}

static int64_t target_us(const struct consumer *c)
{
    return c->replay_through != CHECKPOINT_NONE &&
                   (db_abilities(c->env->db) & DB_CAN_MANY_HOSTS) != 0
               ? REPLAY_TARGET_US
               : TARGET_US;
}

void consumer_adapt(struct consumer *c, size_t count, int64_t took_us)
{
    int64_t target = target_us(c);
    size_t fits;

    if (count == 0)
        return;
    fits = (size_t)((int64_t)count * target / (took_us > 0 ? took_us : 1));
    if (fits < 1)
        fits = 1;
    /* what a transaction costs by itself says nothing about more messages */
    if (took_us <= target && fits < c->limit)
        return;
    if (fits > 2 * c->limit)
        fits = 2 * c->limit;
    c->limit = fits < c->env->batch ? fits : c->env->batch;
}

bool consumer_is_behind(const struct consumer *c, int64_t mark)
{
    /* positions start at 1: there is nothing to read in an empty topic */
    for (int p = 0; mark > 0 && consumer_runs(c) && p < c->reached.partitions;
         p++)
        if (leases_hold(&c->leases, p) && c->reached.position[p] < mark &&
            !c->held.blocked[p])
            return true;
    return consumer_runs(c) && rebuild_is_read(c);
}

enum status consumer_check(struct consumer *c, struct diag *diag)
{
    return c->unchecked ? declared_check_again(c, diag) : STATUS_OK;
}

/* Deadlines and pages take turns. */
static enum status fire_turn(struct consumer *c,
                             const struct high_water_mark *mark, bool *worked,
                             struct diag *diag)
{
    bool waits;
    enum status status = STATUS_OK;

    if (!c->fire.yields && fire_may(c, mark, &waits))
        status = fire_due(c, worked, diag);
    c->fire.yields = *worked;
    return status;
}

static enum status step(struct consumer *c, const struct high_water_mark *mark,
                        bool *worked, struct diag *diag)
{
    struct poll poll;
    int64_t upto = mark->mark;
    int64_t began;
    bool found, undone, careful;
    enum status status;

    *worked = false;
    if (!consumer_runs(c) || c->leases.count == 0)
        return STATUS_OK;
    if (c->unchecked) {
        status = declared_check_again(c, diag);
        if (status != STATUS_OK)
            return status;
        *worked = !consumer_runs(c);
        if (*worked)
            return STATUS_OK;
    }
    if (!c->held_known) {
        status = standing_read_holds(c, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (retry_turn_comes(c)) {
        status = retry_turn_take(c, worked, diag);
        if (status != STATUS_OK || *worked || !consumer_runs(c))
            return status;
    }
    c->retries.yields = false;
    status = fire_turn(c, mark, worked, diag);
    if (status != STATUS_OK || *worked || !consumer_runs(c))
        return status;
    if (flight_is_of(c) && rebuild_is_read(c)) {
        status = flight_settle(c->env->flight, &undone, diag);
        *worked = undone;
        if (status != STATUS_OK || undone)
            return status;
    }
    if (rebuild_is_read(c))
        return rebuild_finish(c, worked, diag);
    if (gap_is_met(c, mark->start)) {
        *worked = true;
        return gap_settle(c, mark->start, diag);
    }
    if (c->replay_through != CHECKPOINT_NONE && c->replay_through < upto)
        upto = c->replay_through;
    careful_settle(c, mark->mark);
    careful = careful_take_turn(c, upto);
    if (careful && c->careful_singly && c->singly == 0)
        c->singly = 1;
    status = poll_page(c, upto, &poll, &found, diag);
    if (status == STATUS_OK && flight_is_of(c) &&
        (!found || c->page.count == 0 || !flight_may(c, &poll))) {
        status = flight_settle(c->env->flight, &undone, diag);
        *worked = undone;
        if (undone) /* the page begins elsewhere now */
            return status;
    }
    if (status != STATUS_OK)
        return status;
    if (found && gap_is_met(c, c->page.start)) {
        *worked = true;
        return gap_settle(c, c->page.start, diag);
    }
    if (!found && c->retries.doubtful)
        return retry_turn_take(c, worked, diag);
    if (!found) {
        /* nothing may come behind the stretch for long */
        if (standing_save_is_due(c, mark->start))
            return standing_save(c, diag);
        /* its turn was the page's */
        c->retries.gathers = 0;
        *worked = retry_turn_is_due(c) || fire_left(c) <= 0;
        return STATUS_OK;
    }
    *worked = true;
    if (c->page.count == 0) {
        for (size_t i = 0; i < poll.npartitions; i++)
            c->reached.position[poll.partitions[i]] = c->page.through;
        return standing_save_is_due(c, mark->start) ? standing_save(c, diag)
                                                    : STATUS_OK;
    }
    standing_begin_page(c);
    began = clock_monotonic();
    status = apply_page(c, &poll, diag);
    if (status == STATUS_OK && c->singly == 0 && !careful && !flight_is_of(c))
        consumer_adapt(c, c->page.count, clock_monotonic() - began);
    /* before anything else wants the connection */
    if (status == STATUS_OK && flight_is_of(c))
        poll_fetch(c, &poll);
    return status;
}

enum status consumer_step(struct consumer *c,
                          const struct high_water_mark *mark, bool *worked,
                          struct diag *diag)
{
    enum status status = step(c, mark, worked, diag);

    fire_note(c);
    return status;
}
