#include "consumer/careful.h"

#include "consumer/apply.h"
#include "consumer/outcome.h"

#include <limits.h>

/* So many messages behind its checkpoint the dead one's page is taken to have
 * had. Pages have more only where a message takes less than 0.1 ms
 * (consumer_adapt), and never the first one of a process. What lies further
 * behind may end another process; whoever takes over then begins where that
 * page began, so it is found all the same. */
#define MOST_MESSAGES 500

/* So long one step goes on from message to message. */
#define STEP_US (CLOCK_SECOND / 5)

/* How many messages the dead one can have had in hand. */
static size_t most(const struct consumer *c)
{
    return c->env->batch < MOST_MESSAGES ? c->env->batch : MOST_MESSAGES;
}

static bool is_on(const struct consumer *c)
{
    for (size_t i = 0; i < c->leases.count; i++)
        if (c->careful_through[c->leases.mine[i]] != CHECKPOINT_NONE)
            return true;
    return false;
}

bool careful_take_turn(struct consumer *c, int64_t upto)
{
    bool careful = false, others = false;

    if (c->own_key)
        return is_on(c);
    for (size_t i = 0; i < c->leases.count; i++) {
        int64_t p = c->leases.mine[i];

        if (c->held.blocked[p] || c->reached.position[p] >= upto)
            continue;
        if (c->careful_through[p] != CHECKPOINT_NONE)
            careful = true;
        else
            others = true;
    }
    c->careful_turn = careful && !(others && c->careful_turn);
    return c->careful_turn;
}

void careful_begin(struct consumer *c, int partition)
{
    c->careful_through[partition] = CAREFUL_UNKNOWN;
    c->careful_retries = most(c);
}

void careful_settle(struct consumer *c, int64_t mark)
{
    for (int p = 0; p < c->reached.partitions; p++)
        if (c->reached.position[p] >= mark ||
            c->reached.position[p] >= c->careful_through[p])
            c->careful_through[p] = CHECKPOINT_NONE;
    c->careful_told = c->careful_told && is_on(c);
}

bool careful_is_of(const struct consumer *c, const struct poll *poll)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        if (c->careful_through[poll->partitions[i]] != CHECKPOINT_NONE)
            return true;
    return false;
}

static void keep(struct consumer *c, int64_t position, int partition,
                 struct text key, bool unresolved, int failures)
{
    struct consumer_counted *own = &c->counted;

    own->position = position;
    own->partition = partition;
    own->unresolved = unresolved;
    own->retried = false;
    own->failures = failures;
    buffer_clear(&own->key);
    buffer_append_text(&own->key, key);
}

/* A message whose keys are to be told first counts for one partition: the page
 * that meets it again records it for the others. */
static struct text counted_key(const struct consumer *c,
                               const struct message *m)
{
    return c->own_key ? TEXT_NONE : m->key;
}

static int counted_partition(const struct consumer *c, const struct poll *poll,
                             const struct message *m)
{
    return c->own_key ? (int)poll->partitions[0] : m->partition;
}

static void keep_message(struct consumer *c, const struct poll *poll,
                         const struct message *m)
{
    keep(c, m->position, counted_partition(c, poll, m), counted_key(c, m),
         c->own_key, 1);
    c->retries.any = true;
}

void careful_passed(struct consumer *c, const struct poll *poll,
                    int64_t through)
{
    if (!careful_is_of(c, poll))
        return;
    c->counted.position = 0;
    for (size_t i = 0; i < poll->npartitions; i++) {
        int64_t *end = &c->careful_through[poll->partitions[i]];

        if (*end <= through)
            *end = CHECKPOINT_NONE;
    }
    if (c->counted.rides)
        keep_message(c, poll, c->counted.next);
}

static void set_reason(struct failure *failure)
{
    failure_recorded(failure, text_of(FAILURE_UNTOLD));
}

/* --- pages ---------------------------------------------------------------- */

static void tell(struct consumer *c, int64_t through)
{
    const struct log_about about = {.consumer = c->name.name,
                                    .topic = c->source};
    size_t count = 0;

    if (c->careful_told)
        return;
    c->careful_told = true;
    for (size_t i = 0; i < c->leases.count; i++)
        count += c->careful_through[c->leases.mine[i]] != CHECKPOINT_NONE;
    log_write(c->env->log, LOG_INFO, &about,
              "took %zu partitions over from an instance that ended without a "
              "word: one message at a time up to position %lld, in case one of "
              "them ended it",
              count, (long long)through);
}

/* How far the dead one's page can have reached that began here. */
static enum status find_end(struct consumer *c, const struct poll *poll,
                            struct diag *diag)
{
    struct poll ahead = *poll;
    bool unknown = false;
    size_t left = most(c);
    enum status status = STATUS_OK;

    for (size_t i = 0; i < poll->npartitions; i++)
        unknown |= c->careful_through[poll->partitions[i]] == CAREFUL_UNKNOWN;
    if (!unknown)
        return STATUS_OK;
    while (status == STATUS_OK && left > 0 && ahead.after < poll->mark) {
        status = poll_read(c, &ahead, left, diag);
        left -= c->page.count < left ? c->page.count : left;
        ahead.after = c->page.through;
    }
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < poll->npartitions; i++) {
        int64_t *end = &c->careful_through[poll->partitions[i]];

        if (*end == CAREFUL_UNKNOWN)
            *end = ahead.after;
    }
    tell(c, ahead.after);
    return STATUS_OK;
}

/* The first message of what was read, and perhaps the one behind it. Of one
 * whose keys are not known nobody can say whether it is tried. */
static void take_one(struct consumer *c, const struct poll *poll)
{
    const struct message *m = c->page.messages;

    c->counted.next = NULL;
    c->counted.rides = false;
    if (c->page.count > 1 && !c->own_key && m[1].key.data != NULL &&
        m[1].position <= poll->upto)
        c->counted.next = &m[1];
    c->page.count = 1;
    c->page.through = m[0].position;
}

/* A retry counts for all partitions of this process in which the message was
 * met. Another host that met a count has recorded the message for its own, and
 * has passed it: that row is all that is left of it there. */
static bool counts_for(const struct consumer *c, int partition)
{
    return c->counted.partition == partition ||
           (c->counted.unresolved && c->counted.retried &&
            leases_hold(&c->leases, partition));
}

/* Whether a row is the count of the attempt in hand. Somebody else may have
 * changed it since. */
static bool is_own(const struct consumer *c, int64_t position, int partition,
                   struct text key, bool unresolved, int failures)
{
    const struct consumer_counted *own = &c->counted;

    return own->position == position && own->unresolved == unresolved &&
           own->failures == failures && counts_for(c, partition) &&
           (unresolved || text_equal(buffer_text(&own->key), key));
}

static bool is_own_recorded(const struct consumer *c,
                            const struct undelivered_recorded *row)
{
    return row->status == UNDELIVERED_FAILED &&
           is_own(c, row->position, row->partition, row->key, row->unresolved,
                  row->failure_count);
}

/* A message that only waits is not tried, and one that is recorded neither. */
static bool is_tried(const struct consumer *c, const struct message *m,
                     size_t nrows)
{
    if (nrows > 0)
        return false;
    return c->own_key || undelivered_keys_held(&c->held, m->key) == KEY_FREE;
}

static enum status queue_count(struct consumer *c, const struct poll *poll,
                               const struct message *m, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    int64_t now = consumer_clock(env);
    struct undelivered_entry *entry = arena_alloc(&c->arena, sizeof(*entry));
    struct failure failure;

    set_reason(&failure);
    *entry = (struct undelivered_entry){
        .message = m,
        .key = counted_key(c, m),
        .partition = counted_partition(c, poll, m),
        .status = UNDELIVERED_FAILED,
        .failure_count = 1,
        .failure = apply_keep_failure(c, &failure),
        .next_retry_at = outcome_retry_at(&c->policy.retry, m, 1, now),
        .unresolved = c->own_key,
    };
    return undelivered_record(env->db, env->names, c->row.id, c->source, entry,
                              1, env->ids, now, &c->arena, diag);
}

static enum status count_message(struct consumer *c, const struct poll *poll,
                                 const struct message *m, struct diag *diag)
{
    enum status status = queue_count(c, poll, m, diag);

    if (status == STATUS_OK)
        status = db_commit(c->env->db, NULL, diag);
    if (status == STATUS_OK)
        keep_message(c, poll, m);
    return status;
}

enum status careful_page(struct consumer *c, const struct poll *poll, bool *go,
                         struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    struct undelivered_recorded *rows;
    const struct message *m;
    size_t count = 0;
    enum status status = find_end(c, poll, diag);

    *go = false;
    c->counted.began = clock_monotonic();
    if (status == STATUS_OK)
        status = poll_read(c, poll, 2, diag);
    if (status != STATUS_OK || c->page.count == 0) /* it is gone meanwhile */
        return status;
    take_one(c, poll);
    m = &c->page.messages[0];
    status = apply_begin(c, go, &lock, diag);
    if (status != STATUS_OK || !*go)
        return status;
    if (lock.undelivered)
        status = undelivered_recorded(env->db, env->catalog, c->row.id,
                                      c->source, m->position - 1, m->position,
                                      &c->arena, &rows, &count, diag);
    if (status == STATUS_OK && is_tried(c, m, count))
        status = count_message(c, poll, m, diag);
    db_rollback(env->db);
    return status;
}

enum status careful_next(struct consumer *c, const struct poll *poll, bool *go,
                         struct diag *diag)
{
    bool rode = c->counted.rides;
    enum status status = STATUS_OK;

    *go = false;
    c->counted.rides = false;
    c->counted.next = NULL;
    if (!rode)
        return STATUS_OK;
    status = poll_read(c, poll, 2, diag);
    if (status != STATUS_OK || c->page.count == 0 ||
        c->page.messages[0].position != c->counted.position)
        return status;
    take_one(c, poll);
    c->singly = 1;
    *go = true;
    return STATUS_OK;
}

int64_t careful_looks_to(const struct consumer *c)
{
    const struct message *next = c->counted.next;

    return next != NULL ? next->position : c->page.through;
}

/* Whether nothing holds the next one back. */
static bool is_free(const struct consumer *c, const struct message *next)
{
    return undelivered_keys_held(&c->held, next->key) == KEY_FREE &&
           undelivered_keys_held(&c->newly, next->key) == KEY_FREE;
}

/* Somebody must be careful with the next one still, and what the one in hand
 * has led to must leave it to be tried. */
static bool may_ride(const struct consumer *c, const struct poll *poll,
                     const struct undelivered_recorded *rows, size_t count)
{
    const struct message *next = c->counted.next;
    bool careful = false;

    if (next == NULL || c->row.state != CONSUMER_RUNNING || c->met_recorded ||
        !c->held_known || clock_monotonic() - c->counted.began >= STEP_US)
        return false;
    for (size_t i = 0; i < poll->npartitions; i++)
        careful |= c->careful_through[poll->partitions[i]] > c->page.through;
    for (size_t i = 0; i < count; i++)
        careful = careful && rows[i].position != next->position;
    return careful && is_free(c, next);
}

enum status careful_count_next(struct consumer *c, const struct poll *poll,
                               const struct undelivered_recorded *rows,
                               size_t count, struct diag *diag)
{
    c->counted.rides = may_ride(c, poll, rows, count);
    if (!c->counted.rides)
        return STATUS_OK;
    return queue_count(c, poll, c->counted.next, diag);
}

enum status careful_take_back(struct consumer *c,
                              struct undelivered_recorded *rows, size_t *count,
                              struct diag *diag)
{
    struct text *ids;
    size_t nids = 0, left = 0;

    if (c->counted.position == 0 || c->counted.retried)
        return STATUS_OK;
    ids = arena_alloc(&c->arena, (*count + 1) * sizeof(*ids));
    for (size_t i = 0; i < *count; i++) {
        if (is_own_recorded(c, &rows[i]))
            ids[nids++] = arena_copy(&c->arena, text_of(rows[i].id));
        else
            rows[left++] = rows[i];
    }
    *count = left;
    return undelivered_delete(c->env->db, c->env->catalog, ids, nids, diag);
}

enum status careful_end(struct consumer *c, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoint_lock lock = {.epoch = 0};
    struct undelivered_recorded *rows;
    size_t count = 0;
    bool run;
    enum status status;

    if (c->counted.retried)
        c->counted.position = 0;
    if (c->counted.position == 0)
        return STATUS_OK;
    status = apply_begin(c, &run, &lock, diag);
    if (status != STATUS_OK || !run)
        return status;
    arena_reset(&c->arena);
    status = undelivered_recorded(env->db, env->catalog, c->row.id, c->source,
                                  c->counted.position - 1, c->counted.position,
                                  &c->arena, &rows, &count, diag);
    if (status == STATUS_OK)
        status = careful_take_back(c, rows, &count, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    db_rollback(env->db);
    if (status == STATUS_OK)
        c->counted.position = 0;
    return status;
}

/* --- retries -------------------------------------------------------------- */

void careful_saw_due(struct consumer *c, size_t count)
{
    if (count == 0 && !is_on(c))
        c->careful_retries = 0;
}

void careful_retried(struct consumer *c)
{
    if (!c->counted.retried)
        return;
    /* its rows in other partitions stand for the same attempt */
    if (!c->counted.unresolved)
        c->counted.position = 0;
    c->careful_retries -= c->careful_retries > 0;
}

bool careful_is_of_row(const struct consumer *c,
                       const struct undelivered_row *row)
{
    return c->careful_retries > 0 || failure_is_crash(row->reason);
}

void careful_mark_counted(const struct consumer *c, struct undelivered_row *row)
{
    /* a row that says what failed is past the attempt that was counted */
    row->counted = failure_is_crash(row->reason) &&
                   is_own(c, row->message.position, row->partition, row->key,
                          row->unresolved, row->failure_count);
}

/* All rows of a message without keys count together, as they are one message.
 */
enum status careful_count_row(struct consumer *c,
                              const struct undelivered_row *row,
                              struct diag *diag)
{
    const struct consumer_env *env = c->env;
    int64_t position = row->message.position;
    int failures = row->failure_count < INT_MAX ? row->failure_count + 1
                                                : INT_MAX;
    struct undelivered_entry *entry = arena_alloc(&c->arena, sizeof(*entry));
    struct undelivered_failed *failed;
    struct undelivered_recorded *rows;
    struct failure failure;
    size_t count = 0, nfailed = 0;
    enum status status = undelivered_recorded(env->db, env->catalog, c->row.id,
                                              c->source, position - 1, position,
                                              &c->arena, &rows, &count, diag);

    if (status != STATUS_OK)
        return status;
    set_reason(&failure);
    *entry = (struct undelivered_entry){
        .status = UNDELIVERED_FAILED, /* and due at once */
        .failure_count = failures,
        .failure = apply_keep_failure(c, &failure),
    };
    failed = arena_alloc(&c->arena, (count + 1) * sizeof(*failed));
    for (size_t i = 0; i < count; i++)
        if (leases_hold(&c->leases, rows[i].partition) &&
            rows[i].failure_count == row->failure_count &&
            rows[i].unresolved == row->unresolved &&
            (row->unresolved || (rows[i].partition == row->partition &&
                                 text_equal(rows[i].key, row->key))))
            failed[nfailed++] = (struct undelivered_failed){rows[i].id, entry};
    keep(c, position, row->partition, row->key, row->unresolved, failures);
    c->counted.retried = true;
    return undelivered_fail(env->db, env->names, failed, nfailed, &c->arena,
                            diag);
}
