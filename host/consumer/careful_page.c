#include "consumer/careful_page.h"

#include "consumer/apply.h"
#include "consumer/careful_count.h"
#include "consumer/failure.h"
#include "consumer/page_units.h"

bool careful_page_counts(const struct undelivered_recorded *row)
{
    return row->status == UNDELIVERED_FAILED &&
           text_equal(row->reason, text_of(FAILURE_UNTOLD_PAGE));
}

/* Behind its partition's checkpoint it is all that is left of its message: a
 * program that does not know what it counts has passed it. */
bool careful_page_is_row(const struct consumer *c, const struct poll *poll,
                         const struct undelivered_recorded *row)
{
    return careful_page_counts(row) && poll_has(poll, row->partition) &&
           row->position > c->stored.position[row->partition];
}

/* --- counting ------------------------------------------------------------- */

struct count {
    struct consumer *consumer;
    bool *done; /* by partition: it has its row */
    struct undelivered_entry *entries;
    size_t nentries;
    const struct failure *failure;
};

static void add(struct count *count, const struct message *m, int partition)
{
    struct consumer *c = count->consumer;

    if (count->done[partition])
        return;
    count->done[partition] = true;
    count->entries[count->nentries++] = (struct undelivered_entry){
        .message = m,
        .key = c->own_key ? TEXT_NONE : page_units_key(c, m),
        .partition = partition,
        .status = UNDELIVERED_FAILED,
        .failure_count = 0,
        .failure = count->failure,
        .unresolved = c->own_key,
    };
}

/* A message whose keys are to be told is tried for all partitions of the page
 * at once. */
static void add_page(struct count *count, const struct poll *poll,
                     const struct recorded *recorded)
{
    struct consumer *c = count->consumer;

    for (size_t i = 0; i < c->page.count; i++) {
        const struct message *m = &c->page.messages[i];

        if (!careful_count_tries(c, m, recorded))
            continue;
        if (!c->own_key && poll_has(poll, m->partition))
            add(count, m, m->partition);
        if (!c->own_key)
            continue;
        for (size_t p = 0; p < poll->npartitions; p++)
            add(count, m, (int)poll->partitions[p]);
        return;
    }
}

static void begin(struct count *count, const struct poll *poll,
                  const struct recorded *recorded)
{
    struct consumer *c = count->consumer;
    size_t partitions = (size_t)c->reached.partitions;
    struct failure failure;

    failure_recorded(&failure, text_of(FAILURE_UNTOLD_PAGE));
    count->failure = apply_keep_failure(c, &failure);
    count->done = arena_alloc_zero(&c->arena,
                                   partitions * sizeof(*count->done));
    count->entries = arena_alloc(&c->arena,
                                 partitions * sizeof(*count->entries));
    for (size_t i = 0; i < recorded->count; i++)
        if (careful_page_is_row(c, poll, &recorded->rows[i]))
            count->done[recorded->rows[i].partition] = true;
}

enum status careful_page_count(struct consumer *c, const struct poll *poll,
                               const struct recorded *recorded,
                               struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct count count = {.consumer = c};
    enum status status;

    begin(&count, poll, recorded);
    add_page(&count, poll, recorded);
    if (count.nentries == 0)
        return STATUS_OK;
    status = undelivered_record(env->db, env->names, c->row.id, c->source,
                                count.entries, count.nentries, env->ids,
                                consumer_clock(env), &c->arena, diag);
    if (status != STATUS_OK)
        return status;
    /* also when nobody knows what became of the commit: what is found there
     * later is of nobody else, as long as the lease is held */
    for (size_t i = 0; i < count.nentries; i++)
        c->careful_at[count.entries[i].partition].counted = true;
    if (c->counted.page_through < c->page.through)
        c->counted.page_through = c->page.through;
    c->retries.any = true;
    return db_commit(env->db, NULL, diag);
}

/* --- taking back ---------------------------------------------------------- */

enum status careful_page_take_back(struct consumer *c, const struct poll *poll,
                                   struct recorded *recorded, struct diag *diag)
{
    struct text *ids = arena_alloc(&c->arena,
                                   (recorded->count + 1) * sizeof(*ids));
    size_t nids = 0, left = 0;

    for (size_t i = 0; i < recorded->count; i++) {
        struct undelivered_recorded *row = &recorded->rows[i];

        if (careful_page_is_row(c, poll, row))
            ids[nids++] = arena_copy(&c->arena, text_of(row->id));
        else if (!careful_page_counts(row) || poll_has(poll, row->partition))
            recorded->rows[left++] = *row;
    }
    recorded->count = left;
    return undelivered_delete(c->env->db, c->env->catalog, ids, nids, diag);
}

void careful_page_passed(struct consumer *c, const struct poll *poll)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        c->careful_at[poll->partitions[i]].counted = false;
    for (int p = 0; p < c->reached.partitions; p++)
        if (c->careful_at[p].counted)
            return;
    c->counted.page_through = 0;
}

/* The partitions in which something is left that this process has counted. */
static struct poll counted_partitions(struct consumer *c)
{
    struct poll poll = {.after = INT64_MAX};

    poll.partitions = arena_alloc(&c->arena, (size_t)c->reached.partitions *
                                                 sizeof(*poll.partitions));
    for (int p = 0; p < c->reached.partitions; p++) {
        if (!c->careful_at[p].counted || !leases_hold(&c->leases, p))
            continue;
        poll.partitions[poll.npartitions++] = p;
        if (c->stored.position[p] < poll.after)
            poll.after = c->stored.position[p];
    }
    return poll;
}

enum status careful_page_end(struct consumer *c, struct diag *diag)
{
    struct checkpoint_lock lock = {.epoch = 0};
    struct recorded recorded = {.count = 0};
    struct poll poll;
    bool run;
    enum status status;

    if (c->counted.page_through == 0)
        return STATUS_OK;
    status = apply_begin(c, &run, &lock, diag);
    if (status != STATUS_OK || !run)
        return status;
    arena_reset(&c->arena);
    poll = counted_partitions(c);
    if (poll.npartitions > 0)
        status = recorded_read(c, &poll, c->counted.page_through, &recorded,
                               diag);
    if (status == STATUS_OK)
        status = careful_page_take_back(c, &poll, &recorded, diag);
    if (status == STATUS_OK)
        status = db_commit(c->env->db, NULL, diag);
    db_rollback(c->env->db);
    if (status == STATUS_OK)
        careful_page_passed(c, &poll);
    return status;
}
