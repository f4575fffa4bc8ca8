#include "consumer/careful.h"

#include "consumer/apply.h"
#include "consumer/outcome.h"

#include <limits.h>

bool careful_is_on(const struct consumer *c)
{
    for (size_t i = 0; i < c->leases.count; i++)
        if (c->careful_through[c->leases.mine[i]] != CHECKPOINT_NONE)
            return true;
    return false;
}

void careful_begin(struct consumer *c, int partition)
{
    c->careful_through[partition] = CAREFUL_UNKNOWN;
    c->careful_retries = true;
}

void careful_settle(struct consumer *c, int64_t mark)
{
    for (int p = 0; p < c->reached.partitions; p++)
        if (c->reached.position[p] >= mark ||
            c->reached.position[p] >= c->careful_through[p])
            c->careful_through[p] = CHECKPOINT_NONE;
}

bool careful_is_of(const struct consumer *c, const struct poll *poll)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        if (c->careful_through[poll->partitions[i]] != CHECKPOINT_NONE)
            return true;
    return false;
}

void careful_passed(struct consumer *c, const struct poll *poll,
                    int64_t through)
{
    c->counted.position = 0;
    for (size_t i = 0; i < poll->npartitions; i++) {
        int64_t *end = &c->careful_through[poll->partitions[i]];

        if (*end <= through)
            *end = CHECKPOINT_NONE;
    }
}

static void set_reason(struct failure *failure)
{
    failure_recorded(failure, text_of(FAILURE_UNTOLD));
}

/* --- pages ---------------------------------------------------------------- */

/* How far the dead one's page can have reached that began here: as far as any
 * page does. */
static enum status find_end(struct consumer *c, const struct poll *poll,
                            struct diag *diag)
{
    struct poll ahead = *poll;
    bool unknown = false;
    size_t left = c->env->batch;
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
    return poll_read(c, poll, 1, diag);
}

/* Whether a row is the count of the attempt in hand. Somebody else may have
 * changed it since. */
static bool is_own(const struct consumer *c, int64_t position, int partition,
                   struct text key, bool unresolved, int failures)
{
    const struct consumer_counted *own = &c->counted;

    return own->position == position && own->unresolved == unresolved &&
           own->failures == failures &&
           (unresolved || (own->partition == partition &&
                           text_equal(buffer_text(&own->key), key)));
}

static bool is_own_recorded(const struct consumer *c,
                            const struct undelivered_recorded *row)
{
    return row->status == UNDELIVERED_FAILED &&
           is_own(c, row->position, row->partition, row->key, row->unresolved,
                  row->failure_count);
}

static void keep(struct consumer *c, int64_t position, int partition,
                 struct text key, bool unresolved, int failures)
{
    struct consumer_counted *own = &c->counted;

    own->position = position;
    own->partition = partition;
    own->unresolved = unresolved;
    own->failures = failures;
    buffer_clear(&own->key);
    buffer_append_text(&own->key, key);
}

/* A message that only waits is not tried, and one that is recorded neither. */
static bool is_tried(const struct consumer *c, const struct message *m,
                     size_t nrows)
{
    if (nrows > 0)
        return false;
    return c->own_key || undelivered_keys_held(&c->held, m->key) == KEY_FREE;
}

/* A message whose keys are to be told first counts for one partition: the page
 * that meets it again records it for the others. */
static enum status count_message(struct consumer *c, const struct poll *poll,
                                 const struct message *m, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    int64_t now = clock_now(env->clock);
    struct undelivered_entry *entry = arena_alloc(&c->arena, sizeof(*entry));
    struct failure failure;
    enum status status;

    set_reason(&failure);
    *entry = (struct undelivered_entry){
        .message = m,
        .key = c->own_key ? TEXT_NONE : m->key,
        .partition = c->own_key ? (int)poll->partitions[0] : m->partition,
        .status = UNDELIVERED_FAILED,
        .failure_count = 1,
        .failure = apply_keep_failure(c, &failure),
        .next_retry_at = outcome_retry_at(&c->policy.retry, m, 1, now),
        .unresolved = c->own_key,
    };
    status = undelivered_record(env->db, env->names, c->row.id, c->source,
                                entry, 1, env->ids, now, &c->arena, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    if (status != STATUS_OK)
        return status;
    keep(c, m->position, entry->partition, entry->key, c->own_key, 1);
    c->retries.any = true;
    return STATUS_OK;
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
    if (status != STATUS_OK)
        return status;
    if (c->page.count == 0) { /* nothing is there after all */
        *go = true;
        return STATUS_OK;
    }
    c->page.count = 1;
    m = &c->page.messages[0];
    c->page.through = m->position;
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

enum status careful_take_back(struct consumer *c,
                              struct undelivered_recorded *rows, size_t *count,
                              struct diag *diag)
{
    struct text *ids;
    size_t nids = 0, left = 0;

    if (c->counted.position == 0)
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
    if (count == 0 && !careful_is_on(c))
        c->careful_retries = false;
}

bool careful_is_of_row(const struct consumer *c,
                       const struct undelivered_row *row)
{
    return c->careful_retries || failure_is_crash(row->reason);
}

bool careful_row_is_counted(const struct consumer *c,
                            struct undelivered_row *row)
{
    row->counted = is_own(c, row->message.position, row->partition, row->key,
                          row->unresolved, row->failure_count);
    return row->counted;
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
    return undelivered_fail(env->db, env->names, failed, nfailed, &c->arena,
                            diag);
}
