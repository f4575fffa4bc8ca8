#include "consumer/careful_count.h"

#include "consumer/apply.h"
#include "consumer/careful_page.h"
#include "consumer/outcome.h"
#include "consumer/page_units.h"

#include <limits.h>

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
static struct text counted_key(struct consumer *c, const struct message *m)
{
    return c->own_key ? TEXT_NONE : page_units_key(c, m);
}

static int counted_partition(const struct consumer *c, const struct poll *poll,
                             const struct message *m)
{
    return c->own_key ? (int)poll->partitions[0] : m->partition;
}

void careful_count_keep(struct consumer *c, const struct poll *poll,
                        const struct message *m)
{
    keep(c, m->position, counted_partition(c, poll, m), counted_key(c, m),
         c->own_key, 1);
    c->retries.any = true;
}

static void set_reason(struct failure *failure)
{
    failure_recorded(failure, text_of(FAILURE_UNTOLD));
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

bool careful_count_is_own(const struct consumer *c,
                          const struct undelivered_recorded *row)
{
    return row->status == UNDELIVERED_FAILED &&
           is_own(c, row->position, row->partition, row->key, row->unresolved,
                  row->failure_count);
}

bool careful_count_tries(struct consumer *c, const struct message *m,
                         const struct recorded *recorded)
{
    struct text key = counted_key(c, m);

    for (size_t i = 0; i < recorded->count; i++)
        if (recorded->rows[i].position == m->position &&
            !careful_page_counts(&recorded->rows[i]))
            return false;
    return c->own_key || (key.data != NULL &&
                          undelivered_keys_held(&c->held, key) == KEY_FREE);
}

/* --- messages of a page --------------------------------------------------- */

enum status careful_count_queue(struct consumer *c, const struct poll *poll,
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

enum status careful_count_message(struct consumer *c, const struct poll *poll,
                                  const struct message *m, struct diag *diag)
{
    enum status status = careful_count_queue(c, poll, m, diag);

    if (status == STATUS_OK)
        status = db_commit(c->env->db, NULL, diag);
    if (status == STATUS_OK)
        careful_count_keep(c, poll, m);
    return status;
}

/* --- retries -------------------------------------------------------------- */

void careful_count_mark(const struct consumer *c, struct undelivered_row *row)
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
