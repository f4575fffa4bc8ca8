#include "consumer/consumer.h"

#include "base/memory.h"
#include "consumer/apply.h"
#include "consumer/careful.h"
#include "consumer/deadline.h"
#include "consumer/declared.h"
#include "consumer/fire.h"
#include "consumer/flight.h"
#include "consumer/gap.h"
#include "consumer/poll.h"
#include "consumer/rebuild.h"
#include "consumer/retry.h"

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

/* How long a start that met another one is tried again. */
#define START_FOR_US (2 * CLOCK_SECOND)

/* Undelivered messages are looked at so often although none is due: an
 * operator may have settled some. */
#define LOOK_EVERY_US (2 * CLOCK_SECOND)

/* Looking for what is due takes a part of the time like one in so many. */
#define LOOK_SHARE 20

/* While there are pages, retries that come due one by one are gathered, so that
 * all of them together take one part in so many of the time; none of them waits
 * longer for that. */
#define GATHER_SHARE  10
#define GATHER_MAX_US CLOCK_SECOND

/* Over empty stretches a checkpoint is saved no more often than this. */
#define SAVE_EVERY_US (60 * CLOCK_SECOND)

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
    return now + (env->clock != NULL ? env->clock->offset_us : 0);
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
    c->careful_through = mem_grow(NULL, (size_t)env->partitions,
                                  sizeof(*c->careful_through));
    for (int i = 0; i < env->partitions; i++)
        c->careful_through[i] = CHECKPOINT_NONE;
    checkpoints_init(&c->stored, env->partitions);
    checkpoints_init(&c->reached, env->partitions);
    checkpoints_init(&c->before, env->partitions);
    undelivered_keys_init(&c->held, env->partitions);
    undelivered_keys_init(&c->newly, env->partitions);
}

void consumer_free(struct consumer *c)
{
    leases_free(&c->leases);
    mem_free(c->careful_through);
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

static void copy_positions(struct checkpoints *to,
                           const struct checkpoints *from)
{
    memcpy(to->position, from->position,
           (size_t)from->partitions * sizeof(*from->position));
}

bool consumer_stands_at(const struct consumer *c,
                        const struct checkpoints *other)
{
    for (size_t i = 0; i < c->leases.count; i++) {
        int64_t p = c->leases.mine[i];

        if (other->position[p] != c->stored.position[p])
            return false;
    }
    return true;
}

void consumer_forget_last_batch(struct consumer *c)
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

/* Takes the stored rows into memory; needs a transaction. */
static enum status take_position(struct consumer *c, struct diag *diag)
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
    if (!consumer_stands_at(c, &c->before))
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
        status = take_position(c, diag);
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
enum status consumer_start(struct consumer *c, struct diag *diag)
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

static bool is_running(const struct consumer *c)
{
    return c->row.state == CONSUMER_RUNNING;
}

enum status consumer_open(struct consumer *c, struct diag *diag)
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
        status = take_position(c, diag);
    db_rollback(env->db);
    return status;
}

/* What was taken over from one that had lapsed begins carefully; what was lost
 * is somebody else's to be careful with. */
static void take_leases(struct consumer *c)
{
    for (int p = 0; c->leases.changed && p < c->leases.partitions; p++) {
        if (!leases_hold(&c->leases, p))
            c->careful_through[p] = CHECKPOINT_NONE;
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
    bool ran = is_running(c);
    int64_t epoch = c->row.epoch;
    enum status status;
    bool undone;

    /* what became of it is read from the database in any case */
    if (flight_is_of(c))
        (void)!flight_settle(c->env->flight, &undone, NULL);
    status = db_begin(c->env->db, diag);
    if (status != STATUS_OK)
        return status;
    status = take_position(c, diag);
    db_rollback(c->env->db);
    if (status != STATUS_OK)
        return status;
    take_leases(c);
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
    for (int p = 0; mark > 0 && is_running(c) && p < c->reached.partitions; p++)
        if (leases_hold(&c->leases, p) && c->reached.position[p] < mark &&
            !c->held.blocked[p])
            return true;
    return is_running(c) && rebuild_is_read(c);
}

bool consumer_awaits_retry(const struct consumer *c)
{
    return is_running(c) && c->retries.any && c->retries.next_at != INT64_MAX;
}

/* --- undelivered messages ------------------------------------------------- */

void consumer_look_now(struct consumer *c)
{
    c->retries.next_at = 0;
    c->retries.not_before = 0;
}

static bool look_is_due(const struct consumer *c)
{
    const struct consumer_retries *r = &c->retries;
    int64_t now = consumer_time(c->env);

    if (!r->any || now < r->not_before)
        return false;
    return consumer_clock(c->env) >= r->next_at ||
           now - r->looked_at >= LOOK_EVERY_US;
}

/* When pages have had their part of the time after a look that took so long. */
static int64_t gather_until(const struct consumer_retries *r, int64_t took_us)
{
    int64_t pages = (GATHER_SHARE - 1) * took_us;

    return r->looked_at + (pages < GATHER_MAX_US ? pages : GATHER_MAX_US);
}

static enum status read_holds(struct consumer *c, struct diag *diag)
{
    enum status status = db_begin(c->env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = take_holds(c, diag);
    db_rollback(c->env->db);
    return status;
}

static bool any_blocked(const struct consumer *c)
{
    for (int p = 0; p < c->held.partitions; p++)
        if (leases_hold(&c->leases, p) && c->held.blocked[p])
            return true;
    return false;
}

/* Tries what is due, at most a batch of it. */
static enum status look(struct consumer *c, bool *worked, struct diag *diag)
{
    struct consumer_retries *r = &c->retries;
    int64_t began = consumer_time(c->env);
    bool blocked = any_blocked(c);
    enum status status = retry_due(c, worked, diag);

    if (status != STATUS_OK)
        return status;
    r->looked_at = consumer_time(c->env);
    r->doubtful = false;
    r->not_before = *worked
                        ? 0
                        : r->looked_at + LOOK_SHARE * (r->looked_at - began);
    if (blocked && !*worked)
        c->held_known = false;
    /* pages and retries take turns, unless some partitions would be read
     * apart from the others for that */
    r->yields = *worked && !blocked;
    r->gathers = r->yields && !r->cut ? gather_until(r, r->looked_at - began)
                                      : 0;
    return STATUS_OK;
}

static enum status check_fits(const struct consumer *c, struct diag *diag)
{
    const struct applier *applier = &c->applier;

    return applier->ops->fits == NULL
               ? STATUS_OK
               : applier->ops->fits(applier->self, c->env->db, diag);
}

/* An operator let it run, it was rebuilt, or another process has worked in its
 * partitions: by what this process has loaded? */
static enum status check_again(struct consumer *c, struct diag *diag)
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

enum status consumer_check(struct consumer *c, struct diag *diag)
{
    return c->unchecked ? check_again(c, diag) : STATUS_OK;
}

/* Whether some position was reached over an empty stretch and not saved. */
static bool has_unsaved(const struct consumer *c)
{
    for (int p = 0; p < c->reached.partitions; p++)
        if (leases_hold(&c->leases, p) &&
            c->stored.position[p] < c->reached.position[p])
            return true;
    return false;
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
    if (!is_running(c) || c->leases.count == 0)
        return STATUS_OK;
    if (c->unchecked) {
        status = check_again(c, diag);
        if (status != STATUS_OK)
            return status;
        *worked = !is_running(c);
        if (*worked)
            return STATUS_OK;
    }
    if (!c->held_known) {
        status = read_holds(c, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (!c->retries.yields && look_is_due(c) &&
        consumer_time(c->env) >= c->retries.gathers) {
        status = look(c, worked, diag);
        if (status != STATUS_OK || *worked || !is_running(c))
            return status;
    }
    c->retries.yields = false;
    status = fire_turn(c, mark, worked, diag);
    if (status != STATUS_OK || *worked || !is_running(c))
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
    if (careful && c->singly == 0)
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
        return look(c, worked, diag);
    if (!found) {
        /* nothing may come behind the stretch for long */
        if (consumer_time(c->env) - c->saved_at >= SAVE_EVERY_US &&
            has_unsaved(c))
            return consumer_save(c, diag);
        /* its turn was the page's */
        c->retries.gathers = 0;
        *worked = look_is_due(c) || fire_left(c) <= 0;
        return STATUS_OK;
    }
    *worked = true;
    if (c->page.count == 0) {
        for (size_t i = 0; i < poll.npartitions; i++)
            c->reached.position[poll.partitions[i]] = c->page.through;
        if (consumer_time(c->env) - c->saved_at >= SAVE_EVERY_US)
            return consumer_save(c, diag);
        return STATUS_OK;
    }
    copy_positions(&c->before, &c->stored);
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

enum status consumer_save(struct consumer *c, struct diag *diag)
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
    if (!has_unsaved(c) || !is_running(c))
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
