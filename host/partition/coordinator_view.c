#include "partition/coordinator_view.h"

enum view_kind { VIEW_MEMBER, VIEW_LEASE, VIEW_LAPSED };

enum view_column {
    COLUMN_KIND,
    COLUMN_TYPE,
    COLUMN_NAME,
    COLUMN_PARTITION,
    COLUMN_INSTANCE,
    COLUMN_GENERATION,
    COLUMN_LIVE,
    COLUMN_LEFT,
};

struct reading {
    struct coordinator *coordinator;
    struct coordinator_view *view;
};

static size_t find(const struct coordinator *k, struct text type,
                   struct text name)
{
    for (size_t i = 0; i < k->count; i++)
        if (text_equal(text_of(k->consumers[i].name), name) &&
            text_equal(text_of(k->consumers[i].type), type))
            return i;
    return k->count;
}

static void take_member(const struct reading *reading,
                        struct coordinator_seen *seen, struct db_rows *row)
{
    struct coordinator *k = reading->coordinator;
    struct coordinator_view *view = reading->view;
    struct text id = db_get_text(row, COLUMN_INSTANCE);

    seen->members = arena_grow(&k->arena, seen->members, seen->nmembers,
                               sizeof(*seen->members));
    seen->members[seen->nmembers++] = arena_copy(&k->arena, id);
    if (text_equal(id, text_of(k->id)))
        seen->mine = true;
    else if (db_get_int64(row, COLUMN_LEFT) < view->lapses)
        view->lapses = db_get_int64(row, COLUMN_LEFT);
}

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct reading *reading = arg;
    struct coordinator_view *view = reading->view;
    struct coordinator *k = reading->coordinator;
    int64_t kind = db_get_int64(row, COLUMN_KIND);
    int64_t partition = db_get_int64(row, COLUMN_PARTITION);
    struct coordinator_lease *lease;
    size_t at;

    (void)diag;
    if (kind == VIEW_LAPSED) {
        k->lapsed = arena_grow(&k->arena, k->lapsed, k->nlapsed,
                               sizeof(*k->lapsed));
        k->lapsed[k->nlapsed++] = arena_copy(&k->arena,
                                             db_get_text(row, COLUMN_INSTANCE));
        return STATUS_OK;
    }
    at = find(k, db_get_text(row, COLUMN_TYPE), db_get_text(row, COLUMN_NAME));
    if (at == k->count) /* it ran that before, and does no more */
        return STATUS_OK;
    if (kind == VIEW_MEMBER) {
        take_member(reading, &view->consumers[at], row);
        return STATUS_OK;
    }
    if (partition < 0 || partition >= k->partitions)
        return STATUS_OK;
    lease = &view->consumers[at].leases[partition];
    lease->exists = true;
    lease->generation = db_get_int64(row, COLUMN_GENERATION);
    if (!db_is_null(row, COLUMN_INSTANCE))
        lease->instance = arena_copy(&k->arena,
                                     db_get_text(row, COLUMN_INSTANCE));
    lease->live = db_get_bool(row, COLUMN_LIVE);
    return STATUS_OK;
}

enum status coordinator_view_read(struct coordinator *k,
                                  struct coordinator_view *view,
                                  struct diag *diag)
{
    struct reading reading = {k, view};
    const struct db_value param = db_string(k->id);
    enum status status;

    view->lapses = INT64_MAX / 2;
    view->consumers = arena_alloc_zero(&k->arena, (k->count + 1) *
                                                      sizeof(*view->consumers));
    for (size_t i = 0; i < k->count; i++)
        view->consumers[i].leases = arena_alloc_zero(
            &k->arena,
            (size_t)k->partitions * sizeof(*view->consumers[i].leases));
    status = db_begin_read(k->db, diag);
    if (status == STATUS_OK)
        status = db_rows_each(k->db,
                              catalog_sql(k->catalog, SQL_OWNERSHIP_VIEW),
                              &param, 1, take_row, &reading, diag);
    db_rollback(k->db);
    return status;
}
