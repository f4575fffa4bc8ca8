#include "consumer/operation_walk.h"

#include "base/uuid.h"
#include "consumer/operation.h"

#include <assert.h>

/* Before all ids. */
#define ID_NONE "00000000-0000-0000-0000-000000000000"

/* One transaction, which may be run more than once. */
struct page {
    const struct operation_walk *walk;
    char after[UUID_TEXT_LEN + 1];
    char last[UUID_TEXT_LEN + 1];    /* of the whole walk */
    char through[UUID_TEXT_LEN + 1]; /* of this page */
    int64_t changed;
};

static enum status take_id(void *arg, struct db_rows *row, struct diag *diag)
{
    struct text id = db_get_text(row, 0);
    char *out = arg;

    if (id.len != UUID_TEXT_LEN)
        return diag_set(diag, STATUS_PERMANENT,
                        "the id '" TEXT_FORMAT "' is no UUID", TEXT_ARGS(id));
    memcpy(out, id.data, id.len);
    out[id.len] = '\0';
    return STATUS_OK;
}

/* Stays as it is when there is no row. */
static enum status read_id(const struct operate_env *env,
                           enum sql_statement which,
                           const struct db_value *params, size_t nparams,
                           char id[UUID_TEXT_LEN + 1], struct diag *diag)
{
    return db_rows_each(env->db, catalog_sql(env->catalog, which), params,
                        nparams, take_id, id, diag);
}

static enum status find_last(struct operation *op, void *arg, struct diag *diag)
{
    struct page *page = arg;
    const struct operation_walk *walk = page->walk;

    memcpy(page->last, ID_NONE, sizeof(page->last));
    return read_id(op->env, walk->last, walk->find, walk->nfind, page->last,
                   diag);
}

static enum status find_end(struct operation *op, struct page *page,
                            struct diag *diag)
{
    const struct operation_walk *walk = page->walk;
    struct db_value params[OPERATION_WALK_PARAMS + 3];

    memcpy(params, walk->find, walk->nfind * sizeof(*params));
    params[walk->nfind] = db_string(page->after);
    params[walk->nfind + 1] = db_string(page->last);
    params[walk->nfind + 2] = db_integer(OPERATION_ROWS - 1);
    memcpy(page->through, page->last, sizeof(page->through));
    return read_id(op->env, walk->page_end, params, walk->nfind + 3,
                   page->through, diag);
}

static enum status change_page(struct operation *op, void *arg,
                               struct diag *diag)
{
    struct page *page = arg;
    const struct operation_walk *walk = page->walk;
    struct db_value params[OPERATION_WALK_PARAMS + 2];
    enum status status = find_end(op, page, diag);

    if (status != STATUS_OK)
        return status;
    memcpy(params, walk->values, walk->nvalues * sizeof(*params));
    params[walk->nvalues] = db_string(page->after);
    params[walk->nvalues + 1] = db_string(page->through);
    return db_execute(op->env->db, catalog_sql(op->env->catalog, walk->change),
                      params, walk->nvalues + 2, &page->changed, diag);
}

enum status operation_walk_run(const struct operate_env *env,
                               const struct operation_walk *walk,
                               int64_t *changed, struct diag *diag)
{
    struct page page = {.walk = walk, .after = ID_NONE};
    enum status status;

    assert(walk->nfind <= OPERATION_WALK_PARAMS &&
           walk->nvalues <= OPERATION_WALK_PARAMS);
    *changed = 0;
    status = operation_look(env, find_last, &page, diag);
    while (status == STATUS_OK && strcmp(page.after, page.last) < 0) {
        status = operation_run(env, NULL, false, change_page, &page, diag);
        if (status != STATUS_OK)
            return operation_tell_done(*changed, walk->done, diag);
        *changed += page.changed;
        memcpy(page.after, page.through, sizeof(page.after));
    }
    return status;
}
