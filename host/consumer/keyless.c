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

/* Rows of one message: adds those that are to say what another one says. */
static void align_message(struct consumer *c,
                          const struct undelivered_recorded *rows, size_t count,
                          struct undelivered_failed *differ, size_t *ndiffer)
{
    const struct undelivered_recorded *first = NULL;
    struct undelivered_entry *entry;
    struct failure failure;

    for (size_t i = 0; i < count; i++)
        if (is_tried_here(c, &rows[i]) &&
            (first == NULL || outranks(&rows[i], first)))
            first = &rows[i];
    if (first == NULL)
        return;
    failure_recorded(&failure, first->reason);
    entry = arena_alloc(&c->arena, sizeof(*entry));
    *entry = (struct undelivered_entry){
        .status = UNDELIVERED_FAILED,
        .failure_count = first->failure_count,
        .failure = apply_keep_failure(c, &failure),
        .next_retry_at = first->next_retry_at,
    };
    for (size_t i = 0; i < count; i++)
        if (is_tried_here(c, &rows[i]) && !says_the_same(&rows[i], first))
            differ[(*ndiffer)++] = (struct undelivered_failed){rows[i].id,
                                                               entry};
}

/* The messages among what is due; it is in the order of their positions. */
static size_t positions_of(const struct undelivered_row *due, size_t count,
                           int64_t *positions)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t position = due[i].message.position;

        if (due[i].unresolved &&
            (found == 0 || positions[found - 1] != position))
            positions[found++] = position;
    }
    return found;
}

enum status keyless_align(struct consumer *c, const struct undelivered_row *due,
                          size_t count, bool *changed, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    int64_t *positions = arena_alloc(&c->arena, count * sizeof(*positions));
    size_t npositions = positions_of(due, count, positions);
    struct undelivered_recorded *rows;
    struct undelivered_failed *differ;
    size_t nrows = 0, ndiffer = 0, end;
    enum status status;

    *changed = false;
    if (npositions == 0)
        return STATUS_OK;
    status = undelivered_keyless(env->db, env->catalog, c->row.id, c->source,
                                 positions, npositions, &c->arena, &rows,
                                 &nrows, diag);
    if (status != STATUS_OK)
        return status;
    differ = arena_alloc(&c->arena, nrows * sizeof(*differ));
    for (size_t i = 0; i < nrows; i = end) {
        end = i + 1;
        while (end < nrows && rows[end].position == rows[i].position)
            end++;
        align_message(c, rows + i, end - i, differ, &ndiffer);
    }
    *changed = ndiffer > 0;
    return undelivered_fail(env->db, env->names, differ, ndiffer, &c->arena,
                            diag);
}
