#include "consumer/fire.h"

#include "consumer/apply.h"
#include "consumer/attempt_slot.h"
#include "consumer/deadline.h"
#include "consumer/outcome.h"

#include <limits.h>
#include <stdio.h>

/* So many of what was due the dead one is taken to have had in hand. */
#define CAREFUL_MOST 500

/* So long a mark that is behind its topic's end may keep deadlines waiting. */
#define MARK_FOR_US (CLOCK_SECOND / 2)

/* A deadline of a saga whose messages wait is looked at again so much later. */
#define HELD_US (5 * CLOCK_SECOND)

/* Looking for what is due takes a part of the time like one in so many. */
#define LOOK_SHARE 20

/* Deadlines of the first transaction, when nothing is known of what they cost.
 */
#define FIRST_LIMIT 500

/* So long a transaction may take while more is due than it takes: what it locks
 * only messages of the same sagas wait for. */
#define TARGET_US (100 * CLOCK_SECOND / 1000)

struct batch {
    struct deadline *rows;
    struct deadline_failed *failed; /* by row, where `fails` says so */
    bool *fails;
    size_t count;  /* rows of this transaction */
    int64_t now;   /* deadline_clock */
    bool whole;    /* these are all that are due */
    bool counts;   /* it only counts the attempt that the next one makes */
    bool counted;  /* the one row's attempt is counted already */
    bool recorded; /* what failed is */
};

/* --- when ----------------------------------------------------------------- */

void fire_look_now(struct consumer *c)
{
    c->fire.next_at = INT64_MIN;
    c->fire.not_before = 0;
    c->fire.through = CHECKPOINT_NONE;
}

void fire_careful(struct consumer *c)
{
    c->fire.careful = CAREFUL_MOST;
}

void fire_told(struct consumer *c, int64_t due_at)
{
    if (due_at < c->fire.next_at)
        c->fire.next_at = due_at;
}

/* What this process has set is there: to look for it is no waste. */
void fire_note(struct consumer *c)
{
    int64_t due_at;

    if (!fire_can(c))
        return;
    due_at = c->applier.ops->earliest(c->applier.self);
    if (due_at < c->fire.next_at)
        c->fire.not_before = 0;
    fire_told(c, due_at);
}

int64_t fire_left(const struct consumer *c)
{
    const struct consumer_env *env = c->env;
    int64_t now, left = 0, pause = c->fire.not_before - consumer_time(env);

    if (!fire_can(c) || c->row.state != CONSUMER_RUNNING ||
        c->leases.count == 0 || c->fire.next_at == INT64_MAX)
        return INT64_MAX;
    if (c->fire.next_at != INT64_MIN && db_clock_known(env->db, &now))
        left = c->fire.next_at - clock_shift(env->clock, now);
    return left > pause ? left : pause;
}

bool fire_may(struct consumer *c, const struct high_water_mark *mark,
              bool *waits)
{
    struct consumer_fire *f = &c->fire;
    int64_t now;

    *waits = false;
    if (fire_left(c) > 0)
        return false;
    now = clock_monotonic();
    if (f->through == CHECKPOINT_NONE) {
        f->through = mark->end > mark->mark ? mark->end : mark->mark;
        f->noticed_at = now;
    }
    /* what others have not committed by now may never come */
    if (f->through > mark->mark && now - f->noticed_at >= MARK_FOR_US)
        f->through = mark->mark;
    *waits = f->through > mark->mark;
    /* of a topic that is empty nothing was read */
    return !*waits && (f->through == 0 || !consumer_is_behind(c, f->through));
}

/* --- what becomes of one -------------------------------------------------- */

static int attempt_of(const struct batch *batch, const struct deadline *row)
{
    if (batch->counted)
        return row->attempts;
    return row->attempts < INT_MAX ? row->attempts + 1 : INT_MAX;
}

static void fails(struct consumer *c, struct batch *batch, size_t i,
                  int attempts, const struct failure *failure)
{
    const struct retry_policy *retry = &c->policy.retry;
    const struct deadline *row = &batch->rows[i];
    struct deadline_failed *f = &batch->failed[i];
    bool again = !failure->permanent && !failure->dead_letter &&
                 retry_policy_allows(retry, attempts);

    batch->fails[i] = true;
    *f = (struct deadline_failed){
        .deadline = row,
        .status = again ? DEADLINE_FAILED : DEADLINE_DEAD_LETTER,
        .attempts = attempts,
        .failure = apply_keep_failure(c, failure),
        .next_at = outcome_retry_at(retry, &row->message, attempts, batch->now),
    };
}

static enum key_hold unit_fails(struct consumer *c, void *arg, size_t unit,
                                const struct failure *failure)
{
    struct batch *batch = arg;
    const struct unit *u = &c->units[unit];

    fails(c, batch, u->origin, u->attempt, failure);
    return KEY_FREE; /* neither messages nor other deadlines wait for it */
}

/* It costs no attempt, nor does the one that was counted for it already. */
static void waits(struct consumer *c, struct batch *batch, size_t i,
                  const char *why)
{
    struct deadline_failed *f = &batch->failed[i];
    int attempts = batch->rows[i].attempts - (batch->counted ? 1 : 0);
    struct failure failure;

    failure_set(&failure, false, "held", "%s", why);
    failure.waits = true;
    fails(c, batch, i, attempts, &failure);
    f->status = attempts > 0 ? DEADLINE_FAILED : DEADLINE_PENDING;
    f->next_at = batch->now + HELD_US;
}

/* A message of the saga failed and is to be applied yet: what the saga knows is
 * behind what has happened to it, as for its later messages. */
static void unit_waits(struct consumer *c, void *arg, size_t unit,
                       enum key_hold hold)
{
    waits(c, arg, c->units[unit].origin,
          hold == KEY_DEAD
              ? "it waits for a dead letter of its saga to be retried or "
                "deleted"
              : "it waits for a message of its saga that failed and is tried "
                "again");
}

/* --- one transaction ------------------------------------------------------ */

static bool is_careful(const struct consumer *c, const struct deadline *row)
{
    return c->fire.careful > 0 || failure_is_crash(row->reason);
}

/* Whether the row says what this process has counted for it. */
static bool is_counted(const struct consumer *c, const struct deadline *row)
{
    return c->fire.counted_attempts > 0 &&
           row->attempts == c->fire.counted_attempts &&
           uuid_equal(&row->id, &c->fire.counted);
}

/* Nothing that lies behind such a message is read, and the answer that the
 * deadline is the time-out of may be there. */
static bool is_blocked(const struct consumer *c, const struct deadline *row)
{
    return row->partition >= 0 && row->partition < c->held.partitions &&
           c->held.blocked[row->partition];
}

/* The attempt that spent the budget was counted before it was made, and its
 * host has died of it. */
static bool is_spent(const struct consumer *c, const struct deadline *row)
{
    return row->reason.data != NULL && row->attempts > 0 &&
           !retry_policy_allows(&c->policy.retry, row->attempts);
}

/* Leaves a batch that needs no care, or the one row that does. */
static void take_careful(const struct consumer *c, struct batch *batch)
{
    size_t count = 0;

    while (count < batch->count && !is_careful(c, &batch->rows[count]))
        count++;
    if (count == 0 && batch->count > 0) {
        batch->counted = is_counted(c, &batch->rows[0]);
        batch->counts = !batch->counted && !is_spent(c, &batch->rows[0]) &&
                        !is_blocked(c, &batch->rows[0]);
        count = 1;
    }
    batch->whole = batch->whole && count == batch->count;
    batch->count = count;
}

/* What is sent one by one would meet what one before it has changed of its
 * saga's deadlines: it ends before the second one of a saga. */
static void take_one_each(struct batch *batch)
{
    for (size_t i = 1; i < batch->count; i++)
        for (size_t before = 0; before < i; before++)
            if (text_equal(batch->rows[i].saga_id,
                           batch->rows[before].saga_id)) {
                batch->count = i;
                batch->whole = false;
                return;
            }
}

/* It stays the first that is due. */
static enum status count_attempt(struct consumer *c, struct batch *batch,
                                 struct diag *diag)
{
    const struct deadline *row = &batch->rows[0];
    struct deadline_failed counted = {
        .deadline = row,
        .status = DEADLINE_FAILED,
        .attempts = attempt_of(batch, row),
        .next_at = row->next_at,
    };
    struct failure untold;

    failure_recorded(&untold, text_of(FAILURE_UNTOLD));
    counted.failure = apply_keep_failure(c, &untold);
    c->fire.counted = row->id;
    c->fire.counted_attempts = counted.attempts;
    return deadline_fail(c->env->db, c->env->names, &counted, 1, &c->arena,
                         diag);
}

static void rows_to_units(struct consumer *c, struct batch *batch)
{
    c->nunits = c->nentries = c->nskipping = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct deadline *row = &batch->rows[i];
        struct failure recorded;

        batch->fails[i] = false;
        if (is_blocked(c, row)) {
            waits(c, batch, i,
                  "it waits for a message whose saga cannot be told: that one "
                  "and what lies behind it in its partition may be of its "
                  "saga");
            continue;
        }
        if (!batch->counted && is_spent(c, row)) {
            failure_recorded(&recorded, row->reason);
            fails(c, batch, i, row->attempts, &recorded);
            continue;
        }
        apply_unit_add(c, &(struct unit){
                              .message = &row->message,
                              .key = row->saga_id,
                              .partition = row->partition,
                              .attempt = attempt_of(batch, row),
                              .origin = i,
                              .deadline = row,
                          });
    }
}

/* Before what the units write is sent: one that was fired after it may have
 * moved the row of one that failed, or have taken it away. */
static enum status record_failed(struct consumer *c, void *arg,
                                 struct diag *diag)
{
    struct batch *batch = arg;
    struct deadline_failed *failed;
    size_t count = 0;

    /* what it has run too long for stays due */
    if (c->nunits > 0 && c->units[c->nunits - 1].origin + 1 < batch->count &&
        apply_is_long(c)) {
        batch->count = c->units[c->nunits - 1].origin + 1;
        batch->whole = false;
    }
    failed = arena_alloc(&c->arena, batch->count * sizeof(*failed) + 1);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->fails[i])
            failed[count++] = batch->failed[i];
    batch->recorded = true;
    return deadline_fail(c->env->db, c->env->names, failed, count, &c->arena,
                         diag);
}

static enum status run_units(struct consumer *c, struct batch *batch,
                             const struct apply_search *search, bool *repeat,
                             struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct apply_run run = {
        .careful = search->careful,
        .refused = search->refused,
        .held = &c->held,
        .fails = unit_fails,
        .waits = unit_waits,
        .ran = record_failed,
        .arg = batch,
    };
    enum status status;

    batch->failed = arena_alloc(&c->arena,
                                batch->count * sizeof(*batch->failed));
    batch->fails = arena_alloc(&c->arena, batch->count);
    c->began = clock_monotonic();
    apply_tell_slot(c, ATTEMPT_RETRY);
    undelivered_keys_clear(&c->newly);
    rows_to_units(c, batch);
    status = apply_units(c, &run, repeat, diag);
    if (status != STATUS_OK || *repeat)
        return status;
    if (!batch->recorded)
        status = record_failed(c, batch, diag);
    if (status == STATUS_OK)
        status = checkpoint_still(env->db, env->catalog, c->row.id,
                                  c->row.epoch, c->topic_on, diag);
    return status;
}

static size_t limit_of(const struct consumer *c)
{
    const struct consumer_fire *f = &c->fire;
    size_t most = c->env->batch;

    if (f->singly > 0 || f->careful > 0)
        return 1;
    if (f->limit == 0)
        return most < FIRST_LIMIT ? most : FIRST_LIMIT;
    return f->limit < most ? f->limit : most;
}

static enum status batch_run(struct consumer *c, struct batch *batch,
                             const struct apply_search *search, bool *repeat,
                             struct diag *diag)
{
    const struct consumer_env *env = c->env;
    enum status status = deadline_clock(env->db, env->clock, &batch->now, diag);

    *repeat = false;
    if (status != STATUS_OK)
        return status;
    arena_reset(&c->arena);
    status = deadline_due(env->db, env->catalog, c->name.name, &c->leases,
                          batch->now, limit_of(c), env->batch_bytes, &c->arena,
                          &batch->rows, &batch->count, &batch->whole, diag);
    if (status != STATUS_OK)
        return status;
    if (batch->count == 0)
        return deadline_next(env->db, env->catalog, c->name.name, &c->leases,
                             &c->fire.next_at, diag);
    take_careful(c, batch);
    if (search->careful)
        take_one_each(batch);
    if (batch->counts)
        return count_attempt(c, batch, diag);
    return run_units(c, batch, search, repeat, diag);
}

/* --- after it ------------------------------------------------------------- */

static void tell(const struct consumer *c, const struct deadline_failed *f,
                 int64_t now)
{
    const struct deadline *d = f->deadline;
    int64_t wait = f->next_at - now;
    char id[UUID_TEXT_LEN + 1], follows[96], cause[FAILURE_CAUSE_SIZE];
    const struct log_about about = {
        .consumer = c->name.name, .message_id = id, .alike = cause};

    uuid_format(&d->id, id);
    failure_cause(f->failure, cause);
    if (f->status == DEADLINE_DEAD_LETTER)
        snprintf(follows, sizeof(follows),
                 "it is a dead letter after %d attempts", f->attempts);
    else
        snprintf(follows, sizeof(follows),
                 "attempt %d of %d, tried again in %.1f s", f->attempts,
                 c->policy.retry.attempts,
                 (double)(wait > 0 ? wait : 0) / (double)CLOCK_SECOND);
    log_write(c->env->log,
              f->status == DEADLINE_DEAD_LETTER ? LOG_ERROR : LOG_WARN, &about,
              "deadline '" TEXT_FORMAT "' of saga '" TEXT_FORMAT
              "' could not be fired: %s; %s",
              TEXT_ARGS(d->name), TEXT_ARGS(d->saga_id), f->failure->reason,
              follows);
}

/* Grows as long as a transaction stays short. */
static void adapt(struct consumer *c, size_t count, int64_t took_us)
{
    struct consumer_fire *f = &c->fire;
    size_t limit = limit_of(c);
    int64_t fits = (int64_t)count * TARGET_US / (took_us > 0 ? took_us : 1);

    if (fits < 1)
        fits = 1;
    if (took_us <= TARGET_US && (count < limit || fits < (int64_t)limit))
        return;
    if (fits > 2 * (int64_t)limit)
        fits = 2 * (int64_t)limit;
    f->limit = (size_t)fits < c->env->batch ? (size_t)fits : c->env->batch;
}

static void batch_committed(struct consumer *c, const struct batch *batch)
{
    struct consumer_fire *f = &c->fire;
    bool single = f->singly > 0 || f->careful > 0;

    f->conflicts = 0;
    f->counted_attempts = 0;
    if (!single)
        adapt(c, batch->count, clock_monotonic() - c->began);
    f->singly -= batch->count < f->singly ? batch->count : f->singly;
    f->careful -= batch->count < f->careful ? batch->count : f->careful;
    f->next_at = INT64_MIN; /* there may be more of them */
    f->not_before = 0;
    if (batch->whole)
        f->through = CHECKPOINT_NONE;
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->fails[i]) {
            c->fired++;
            continue;
        }
        if (batch->failed[i].failure->waits)
            continue;
        c->failed++;
        tell(c, &batch->failed[i], batch->now);
    }
}

static void found_none(struct consumer *c, int64_t began)
{
    int64_t now = consumer_time(c->env);

    db_rollback(c->env->db);
    c->fire.through = CHECKPOINT_NONE;
    c->fire.conflicts = 0;
    c->fire.careful = 0;
    c->fire.not_before = now + LOOK_SHARE * (now - began);
}

enum status fire_due(struct consumer *c, bool *worked, struct diag *diag)
{
    struct apply_search search = {.careful = false};

    *worked = false;
    apply_search_resume(&search, c->fire.conflicts);
    for (;;) {
        struct checkpoint_lock lock = {.epoch = 0};
        struct batch batch = {.count = 0};
        int64_t began = consumer_time(c->env);
        bool run, repeat;
        enum status status = apply_begin(c, &run, &lock, diag);

        if (status != STATUS_OK || !run)
            return status;
        status = batch_run(c, &batch, &search, &repeat, diag);
        if (status == STATUS_OK && batch.count == 0) {
            found_none(c, began);
            return STATUS_OK;
        }
        if (status == STATUS_OK && !repeat)
            status = apply_commit(c, search.careful, diag);
        if (!batch.counts)
            c->applier.ops->end(c->applier.self);
        if (status == STATUS_OK && batch.counts)
            continue;
        if (status == STATUS_OK && !repeat) {
            *worked = true;
            batch_committed(c, &batch);
            return STATUS_OK;
        }
        status = apply_search_on(c, &search, status, batch.count <= 1,
                                 &c->fire.conflicts, diag);
        if (search.split) {
            c->fire.singly = batch.count;
            *worked = status == STATUS_OK;
        }
        if (status != STATUS_OK || search.split)
            return status;
    }
}

enum status fire_end(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    char id[UUID_TEXT_LEN + 1];
    struct text untold = TEXT_LITERAL(FAILURE_UNTOLD);
    struct checkpoint_lock lock = {.epoch = 0};
    bool run;
    enum status status;

    if (c->fire.counted_attempts == 0)
        return STATUS_OK;
    uuid_format(&c->fire.counted, id);
    status = apply_begin(c, &run, &lock, diag);
    if (status != STATUS_OK || !run)
        return status;
    status = db_execute(env->db,
                        catalog_sql(env->catalog, SQL_DEADLINE_UNCOUNT),
                        (struct db_value[]){
                            db_string(id),
                            db_integer(c->fire.counted_attempts),
                            db_text_value(untold),
                        },
                        3, NULL, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    db_rollback(env->db);
    if (status == STATUS_OK)
        c->fire.counted_attempts = 0;
    return status;
}
