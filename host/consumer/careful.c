#include "consumer/careful.h"

#include "consumer/apply.h"
#include "consumer/careful_count.h"
#include "consumer/careful_page.h"

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
        if (c->careful_at[c->leases.mine[i]].through != CHECKPOINT_NONE)
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
        if (c->careful_at[p].through != CHECKPOINT_NONE)
            careful = true;
        else
            others = true;
    }
    c->careful_turn = careful && !(others && c->careful_turn);
    return c->careful_turn;
}

void careful_begin(struct consumer *c, int partition)
{
    c->careful_at[partition] = (struct careful_partition){CAREFUL_UNKNOWN,
                                                          false};
    c->careful_retries = most(c);
}

void careful_settle(struct consumer *c, int64_t mark)
{
    for (int p = 0; p < c->reached.partitions; p++)
        if (c->reached.position[p] >= mark ||
            c->reached.position[p] >= c->careful_at[p].through)
            c->careful_at[p].through = CHECKPOINT_NONE;
    if (!is_on(c))
        c->careful_told = c->careful_singly = false;
}

bool careful_is_of(const struct consumer *c, const struct poll *poll)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        if (c->careful_at[poll->partitions[i]].through != CHECKPOINT_NONE)
            return true;
    return false;
}

void careful_passed(struct consumer *c, const struct poll *poll,
                    int64_t through)
{
    if (!careful_is_of(c, poll))
        return;
    c->counted.position = 0;
    for (size_t i = 0; i < poll->npartitions; i++) {
        int64_t *end = &c->careful_at[poll->partitions[i]].through;

        if (*end <= through)
            *end = CHECKPOINT_NONE;
    }
    careful_page_passed(c, poll);
    if (c->counted.rides)
        careful_count_keep(c, poll, c->counted.next);
}

/* --- pages ---------------------------------------------------------------- */

/* How far these partitions are read with care. */
static int64_t furthest(const struct consumer *c, const struct poll *poll)
{
    int64_t through = CHECKPOINT_NONE;

    for (size_t i = 0; i < poll->npartitions; i++)
        if (c->careful_at[poll->partitions[i]].through > through)
            through = c->careful_at[poll->partitions[i]].through;
    return through;
}

static void tell(struct consumer *c, const struct poll *poll)
{
    const struct log_about about = {.consumer = c->name.name,
                                    .topic = c->source};
    long long through = (long long)furthest(c, poll);
    size_t count = 0;

    if (c->careful_told)
        return;
    c->careful_told = true;
    for (size_t i = 0; i < c->leases.count; i++)
        count += c->careful_at[c->leases.mine[i]].through != CHECKPOINT_NONE;
    if (c->careful_singly)
        log_write(
            c->env->log, LOG_INFO, &about,
            "took %zu partitions over from an instance that ended without "
            "a word, as one before it had: one message at a time up to "
            "position %lld, in case one of them ended both",
            count, through);
    else
        log_write(
            c->env->log, LOG_INFO, &about,
            "took %zu partitions over from an instance that ended without "
            "a word: each batch up to position %lld is counted before it "
            "is applied, in case a message ended it",
            count, through);
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
        unknown |= c->careful_at[poll->partitions[i]].through ==
                   CAREFUL_UNKNOWN;
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
        int64_t *end = &c->careful_at[poll->partitions[i]].through;

        if (*end == CAREFUL_UNKNOWN)
            *end = ahead.after;
    }
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

/* Whether a second instance has died here: what it had counted is there, and
 * was not counted by this one. */
static bool is_second_death(const struct consumer *c, const struct poll *poll,
                            const struct recorded *recorded)
{
    for (size_t i = 0; i < recorded->count; i++) {
        const struct undelivered_recorded *row = &recorded->rows[i];
        int p = row->partition;

        if (careful_page_is_row(c, poll, row) && !c->careful_at[p].counted)
            return true;
        if (poll_has(poll, p) && row->position > c->stored.position[p] &&
            text_equal(row->reason, text_of(FAILURE_UNTOLD)) &&
            !careful_count_is_own(c, row))
            return true;
    }
    return false;
}

/* The count of the page that the first message was of ends with it. */
static enum status count_first(struct consumer *c, const struct poll *poll,
                               struct recorded *recorded, struct diag *diag)
{
    const struct message *m = &c->page.messages[0];
    enum status status = careful_page_take_back(c, poll, recorded, diag);

    if (status != STATUS_OK || !careful_count_tries(c, m, recorded))
        return status;
    return careful_count_message(c, poll, m, diag);
}

/* No more than the next one will take for what this one had in hand; of one
 * message at a time the one behind it, too. */
static size_t page_limit(const struct consumer *c)
{
    if (c->careful_singly)
        return 2;
    if (c->singly > 0)
        return 1;
    return c->limit < most(c) ? c->limit : most(c);
}

static enum status read_page(struct consumer *c, const struct poll *poll,
                             struct diag *diag)
{
    struct poll here = *poll;

    if (!c->careful_singly)
        here.mark = poll->upto;
    return poll_read(c, &here, page_limit(c), diag);
}

/* What may be recorded of these partitions and matters here lies so far ahead.
 */
static int64_t look_to(const struct consumer *c, const struct poll *poll)
{
    int64_t upto = furthest(c, poll);

    if (upto < c->page.through)
        upto = c->page.through;
    return upto < c->counted.page_through ? c->counted.page_through : upto;
}

/* Counts what is to be applied: one message where a second one has died. */
static enum status count_page(struct consumer *c, const struct poll *poll,
                              struct recorded *recorded, struct diag *diag)
{
    if (!c->careful_singly && is_second_death(c, poll, recorded)) {
        c->careful_singly = true;
        c->careful_told = false;
    }
    tell(c, poll);
    if (!c->careful_singly)
        return careful_page_count(c, poll, recorded, diag);
    c->singly = 1;
    take_one(c, poll);
    return count_first(c, poll, recorded, diag);
}

enum status careful_begin_page(struct consumer *c, const struct poll *poll,
                               bool *go, struct diag *diag)
{
    struct checkpoint_lock lock = {.epoch = 0};
    struct recorded recorded = {.count = 0};
    enum status status = find_end(c, poll, diag);

    *go = false;
    c->counted.began = clock_monotonic();
    if (status == STATUS_OK)
        status = read_page(c, poll, diag);
    if (status != STATUS_OK || c->page.count == 0) /* it is gone meanwhile */
        return status;
    status = apply_begin(c, go, &lock, diag);
    if (status != STATUS_OK || !*go)
        return status;
    if (lock.undelivered)
        status = recorded_read(c, poll, look_to(c, poll), &recorded, diag);
    if (status == STATUS_OK)
        status = count_page(c, poll, &recorded, diag);
    db_rollback(c->env->db);
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

    if (next != NULL)
        return next->position;
    return c->counted.page_through > c->page.through ? c->counted.page_through
                                                     : c->page.through;
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
        careful |= c->careful_at[poll->partitions[i]].through > c->page.through;
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
    return careful_count_queue(c, poll, c->counted.next, diag);
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
        if (careful_count_is_own(c, &rows[i]))
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
    enum status status = careful_page_end(c, diag);

    if (c->counted.retried)
        c->counted.position = 0;
    if (status != STATUS_OK || c->counted.position == 0)
        return status;
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
