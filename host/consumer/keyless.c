#include "consumer/keyless.h"

#include "consumer/apply.h"

/* What is tried again by this instance. */
static bool is_tried_here(const struct consumer *c,
                          const struct undelivered_recorded *row)
{
    return row->unresolved && row->status == UNDELIVERED_FAILED &&
           row->reason.data != NULL && leases_hold(&c->leases, row->partition);
}

/* Of as many failures, the one that tells what failed says more than one of
 * which nothing was heard; and nobody is tried before its time. */
static bool outranks(const struct undelivered_recorded *a,
                     const struct undelivered_recorded *b)
{
    bool untold = failure_is_crash(a->reason);

    if (a->failure_count != b->failure_count)
        return a->failure_count > b->failure_count;
    if (untold != failure_is_crash(b->reason))
        return !untold;
    return a->next_retry_at > b->next_retry_at;
}

static bool says_the_same(const struct undelivered_recorded *a,
                          const struct undelivered_recorded *b)
{
    return a->failure_count == b->failure_count &&
           a->next_retry_at == b->next_retry_at &&
           failure_is_crash(a->reason) == failure_is_crash(b->reason);
}

static enum status align_message(struct consumer *c, int64_t position,
                                 bool *changed, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct undelivered_recorded *first = NULL;
    struct undelivered_recorded *rows;
    struct undelivered_failed *differ;
    struct undelivered_entry *entry;
    struct failure failure;
    size_t count = 0, ndiffer = 0;
    enum status status = undelivered_recorded(env->db, env->catalog, c->row.id,
                                              c->source, position - 1, position,
                                              &c->arena, &rows, &count, diag);

    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        if (is_tried_here(c, &rows[i]) &&
            (first == NULL || outranks(&rows[i], first)))
            first = &rows[i];
    if (first == NULL)
        return STATUS_OK;
    failure_recorded(&failure, first->reason);
    entry = arena_alloc(&c->arena, sizeof(*entry));
    *entry = (struct undelivered_entry){
        .status = UNDELIVERED_FAILED,
        .failure_count = first->failure_count,
        .failure = apply_keep_failure(c, &failure),
        .next_retry_at = first->next_retry_at,
    };
    differ = arena_alloc(&c->arena, count * sizeof(*differ));
    for (size_t i = 0; i < count; i++)
        if (is_tried_here(c, &rows[i]) && !says_the_same(&rows[i], first))
            differ[ndiffer++] = (struct undelivered_failed){rows[i].id, entry};
    *changed |= ndiffer > 0;
    return undelivered_fail(env->db, env->names, differ, ndiffer, &c->arena,
                            diag);
}

enum status keyless_align(struct consumer *c, const struct undelivered_row *due,
                          size_t count, bool *changed, struct diag *diag)
{
    int64_t seen = 0;
    enum status status = STATUS_OK;

    *changed = false;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        int64_t position = due[i].message.position;

        /* they are in the order of their positions */
        if (!due[i].unresolved || position == seen)
            continue;
        seen = position;
        status = align_message(c, position, changed, diag);
    }
    return status;
}
