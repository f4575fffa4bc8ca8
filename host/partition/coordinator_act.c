#include "partition/coordinator.h"

#include "partition/coordinator_parts.h"
#include "partition/lease_list.h"

static void add_change(struct lease_list *list,
                       const struct coordinator_change *change)
{
    lease_list_add(list, change->consumer->type, change->consumer->name,
                   change->partition, change->generation);
}

/* Queues a statement that takes this instance and some leases. */
static enum status queue_list(struct coordinator *k,
                              enum sql_statement statement,
                              const struct lease_list *list, int64_t expect,
                              struct diag *diag)
{
    const struct db_value params[] = {
        db_string(k->id), db_texts(list->types, list->count),
        db_texts(list->names, list->count),
        db_integers(list->partitions, list->count)};

    if (list->count == 0)
        return STATUS_OK;
    return db_queue(k->db, catalog_sql(k->catalog, statement), params, 4,
                    expect, -1, diag);
}

static enum status write_missing(struct coordinator *k, struct diag *diag)
{
    struct lease_list list = lease_list_make(&k->arena, k->count);

    for (size_t i = 0; i < k->count; i++)
        lease_list_add(&list, k->consumers[i].type, k->consumers[i].name, 0, 0);
    const struct db_value params[] = {db_texts(list.types, list.count),
                                      db_texts(list.names, list.count),
                                      db_integer(k->partitions)};

    if (!k->lacks_rows || list.count == 0)
        return STATUS_OK;
    return db_queue(k->db, catalog_sql(k->catalog, SQL_OWNERSHIP_INSERT),
                    params, 3, DB_ANY_ROWS, -1, diag);
}

/* Marks which of the wanted leases were locked. */
static enum status lock(struct coordinator *k, const struct lease_list *wanted,
                        bool *locked, struct diag *diag)
{
    const struct db_value params[] = {
        db_string(k->id), db_texts(wanted->types, wanted->count),
        db_texts(wanted->names, wanted->count),
        db_integers(wanted->partitions, wanted->count),
        db_integers(wanted->generations, wanted->count)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(k->db,
                                  catalog_sql(k->catalog, SQL_OWNERSHIP_LOCK),
                                  params, 5, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        int64_t place = db_get_int64(rows, 0);

        if (place >= 0 && place < (int64_t)wanted->count)
            locked[place] = true;
    }
    db_rows_close(rows);
    return status;
}

/* Locks those that have lapsed still. Whose row is locked is left for the next
 * time: it may hold that for as long as its session lasts. */
static enum status lock_lapsed(struct coordinator *k, struct text *ids,
                               size_t *count, struct diag *diag)
{
    const struct db_value param = db_texts(k->lapsed, k->nlapsed);
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(k->db,
                                  catalog_sql(k->catalog, SQL_INSTANCE_LAPSED),
                                  &param, 1, &rows, diag);

    *count = 0;
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more &&
           *count < k->nlapsed)
        ids[(*count)++] = arena_copy(&k->arena, db_get_text(rows, 0));
    db_rows_close(rows);
    return status;
}

/* Instances that have lapsed leave no rows behind but their leases. */
static enum status bury(struct coordinator *k, struct diag *diag)
{
    struct text *ids;
    size_t count;
    enum status status;

    if (k->nlapsed == 0)
        return STATUS_OK;
    ids = arena_alloc(&k->arena, k->nlapsed * sizeof(*ids));
    status = lock_lapsed(k, ids, &count, diag);
    if (status != STATUS_OK || count == 0)
        return status;
    const struct db_value param = db_texts(ids, count);

    status = db_queue(k->db, catalog_sql(k->catalog, SQL_MEMBER_LEAVE), &param,
                      1, DB_ANY_ROWS, -1, diag);
    if (status == STATUS_OK)
        status = db_queue(k->db, catalog_sql(k->catalog, SQL_INSTANCE_DELETE),
                          &param, 1, DB_ANY_ROWS, -1, diag);
    return status;
}

static enum status take(struct coordinator *k, const struct lease_list *wanted,
                        bool *locked, struct diag *diag)
{
    struct lease_list taken = lease_list_make(&k->arena, wanted->count);
    enum status status;

    if (wanted->count == 0)
        return STATUS_OK;
    status = lock(k, wanted, locked, diag);
    for (size_t i = 0, at = 0; status == STATUS_OK && i < k->nchanges; i++) {
        if (!k->changes[i].takes)
            continue;
        if (locked[at++])
            add_change(&taken, &k->changes[i]);
    }
    if (status != STATUS_OK)
        return status;
    return queue_list(k, SQL_OWNERSHIP_TAKE, &taken, (int64_t)taken.count,
                      diag);
}

/* Only a known commit changes memory. */
static void acted(struct coordinator *k, const bool *locked)
{
    for (size_t i = 0, at = 0; i < k->nchanges; i++) {
        const struct coordinator_change *change = &k->changes[i];
        struct leases *leases = change->consumer->leases;

        if (!change->takes) {
            leases_set(leases, change->partition, LEASE_NONE);
            continue;
        }
        if (!locked[at++]) {
            k->awaits = true;
            continue;
        }
        leases_set(leases, change->partition, change->generation + 1);
        leases->taken_over[change->partition] = change->lapsed;
    }
    if (k->awaits)
        coordinator_look_again(k, INT64_MAX / 2);
}

enum status coordinator_act(struct coordinator *k, struct diag *diag)
{
    struct lease_list leaving = lease_list_make(&k->arena, k->nchanges);
    struct lease_list wanted = lease_list_make(&k->arena, k->nchanges);
    bool *locked = arena_alloc_zero(&k->arena, k->nchanges + 1);
    enum status status;

    for (size_t i = 0; i < k->nchanges; i++)
        add_change(k->changes[i].takes ? &wanted : &leaving, &k->changes[i]);
    status = db_begin(k->db, diag);
    if (status == STATUS_OK)
        status = write_missing(k, diag);
    if (status == STATUS_OK)
        status = queue_list(k, SQL_OWNERSHIP_RELEASE, &leaving, DB_ANY_ROWS,
                            diag);
    if (status == STATUS_OK)
        status = take(k, &wanted, locked, diag);
    if (status == STATUS_OK)
        status = bury(k, diag);
    if (status == STATUS_OK)
        status = db_commit(k->db, NULL, diag);
    db_rollback(k->db);
    if (status == STATUS_OK)
        acted(k, locked);
    else
        k->look_at = 0; /* what became of it is read */
    k->nchanges = k->nlapsed = 0;
    return status;
}
