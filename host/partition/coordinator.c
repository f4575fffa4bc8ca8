#include "partition/coordinator.h"

#include "base/clock.h"
#include "base/memory.h"
#include "partition/instance.h"
#include "partition/rendezvous.h"

#include <stdio.h>

/* Something that is on its way is looked for so often within the time of a
 * heartbeat, which the hand-over of a partition is to stay below. */
#define LOOKS_PER_BEAT 10
#define LOOK_PAUSE_MIN (CLOCK_SECOND / 100)

/* One that is about to lapse is looked at a moment later. */
#define LAPSE_GRACE (CLOCK_SECOND / 200)

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

struct coordinator_change {
    struct coordinator_consumer *consumer;
    int partition;
    bool takes;         /* else it is handed over */
    int64_t generation; /* as it was seen */
    bool lapsed;        /* who held it has not let go of it */
};

/* What was read of one lease. */
struct lease_seen {
    bool exists;
    bool live;
    int64_t generation;
    struct text instance; /* TEXT_NONE: free */
};

/* What was read of one consumer. */
struct consumer_seen {
    struct text *members; /* living ones, sorted by the database */
    size_t nmembers;
    struct lease_seen *leases; /* by partition */
    bool mine;                 /* this instance is among the members */
};

struct view {
    struct coordinator *coordinator;
    struct consumer_seen *consumers;
    int64_t lapses; /* microseconds until the first of others does */
};

void coordinator_init(struct coordinator *k, struct db *db,
                      const struct catalog *catalog,
                      const struct coordinator_times *times, int partitions,
                      struct uuid_source *ids, const char *id)
{
    *k = (struct coordinator){
        .db = db,
        .catalog = catalog,
        .times = *times,
        .partitions = partitions,
        .beats = true,
    };
    if (id != NULL)
        (void)snprintf(k->id, sizeof(k->id), "%s", id);
    else
        instance_new_id(ids, k->id);
}

void coordinator_free(struct coordinator *k)
{
    arena_free(&k->arena);
    k->changes = NULL;
    k->lapsed = NULL;
    k->nchanges = k->nlapsed = 0;
}

/* --- lists of consumers --------------------------------------------------- */

struct list {
    struct text *types, *names;
    int64_t *partitions, *generations;
    size_t count;
};

static struct list list_make(struct arena *arena, size_t room)
{
    return (struct list){
        .types = arena_alloc(arena, (room + 1) * sizeof(struct text)),
        .names = arena_alloc(arena, (room + 1) * sizeof(struct text)),
        .partitions = arena_alloc(arena, (room + 1) * sizeof(int64_t)),
        .generations = arena_alloc(arena, (room + 1) * sizeof(int64_t)),
    };
}

static void list_add(struct list *list,
                     const struct coordinator_consumer *consumer, int partition,
                     int64_t generation)
{
    list->types[list->count] = text_of(consumer->type);
    list->names[list->count] = text_of(consumer->name);
    list->partitions[list->count] = partition;
    list->generations[list->count++] = generation;
}

/* Queues a statement that takes this instance and some leases. */
static enum status queue_list(struct coordinator *k,
                              enum sql_statement statement,
                              const struct list *list, int64_t expect,
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

/* --- joining -------------------------------------------------------------- */

static enum status write_rows(struct coordinator *k, struct diag *diag)
{
    struct list list = list_make(&k->arena, k->count);
    enum status status = instance_write(k->db, k->catalog, k->id,
                                        k->times.duration, diag);

    for (size_t i = 0; i < k->count; i++)
        if (!k->consumers[i].away)
            list_add(&list, &k->consumers[i], 0, 0);
    const struct db_value params[] = {db_string(k->id),
                                      db_texts(list.types, list.count),
                                      db_texts(list.names, list.count)};

    static const enum sql_statement statements[] = {
        SQL_OWNERSHIP_DROP, SQL_MEMBER_DROP, SQL_MEMBER_WRITE};

    for (size_t i = 0; status == STATUS_OK && i < 3; i++)
        status = db_queue(k->db, catalog_sql(k->catalog, statements[i]), params,
                          3, DB_ANY_ROWS, -1, diag);
    return status;
}

enum status coordinator_join(struct coordinator *k, struct diag *diag)
{
    int64_t now = clock_monotonic();
    enum status status = db_begin(k->db, diag);

    arena_reset(&k->arena);
    k->nchanges = k->nlapsed = 0;
    if (status == STATUS_OK)
        status = write_rows(k, diag);
    if (status == STATUS_OK)
        status = db_commit(k->db, NULL, diag);
    db_rollback(k->db);
    if (status != STATUS_OK)
        return status;
    k->joined = true;
    k->outdated = false;
    k->beat_at = now;
    k->look_at = 0;
    return STATUS_OK;
}

void coordinator_stay_away(struct coordinator *k, size_t consumer, bool away)
{
    if (k->consumers[consumer].away == away)
        return;
    k->consumers[consumer].away = away;
    k->outdated = true;
    if (away)
        leases_drop_all(k->consumers[consumer].leases);
}

bool coordinator_is_outdated(const struct coordinator *k)
{
    return !k->joined || k->outdated;
}

enum status coordinator_beat(struct coordinator *k, struct diag *diag)
{
    const char *id = k->id;
    int64_t now = clock_monotonic();
    int64_t refreshed;
    enum status status;

    if (!k->joined || !k->beats || now - k->beat_at < k->times.heartbeat)
        return STATUS_OK;
    status = instance_refresh(k->db, k->catalog, &id, 1, k->times.duration,
                              &refreshed, diag);
    if (status == STATUS_OK && refreshed == 0)
        return coordinator_join(k, diag);
    if (status == STATUS_OK)
        k->beat_at = now;
    return status;
}

/* --- when ----------------------------------------------------------------- */

bool coordinator_is_due(const struct coordinator *k)
{
    return clock_monotonic() >= k->look_at;
}

void coordinator_look_soon(struct coordinator *k)
{
    k->look_at = 0;
}

int64_t coordinator_left(const struct coordinator *k)
{
    int64_t now = clock_monotonic();
    int64_t left = k->look_at - now;

    if (coordinator_is_outdated(k))
        return 0;
    if (k->beats && k->beat_at + k->times.heartbeat - now < left)
        left = k->beat_at + k->times.heartbeat - now;
    return left > 0 ? left : 0;
}

static void look_again(struct coordinator *k, int64_t lapses)
{
    int64_t pause = k->times.rebalance;

    if (k->awaits && k->times.heartbeat / LOOKS_PER_BEAT < pause)
        pause = k->times.heartbeat / LOOKS_PER_BEAT;
    if (lapses + LAPSE_GRACE < pause)
        pause = lapses + LAPSE_GRACE;
    if (pause < LOOK_PAUSE_MIN)
        pause = LOOK_PAUSE_MIN;
    k->look_at = clock_monotonic() + pause;
}

/* --- looking -------------------------------------------------------------- */

static size_t find(const struct coordinator *k, struct text type,
                   struct text name)
{
    for (size_t i = 0; i < k->count; i++)
        if (text_equal(text_of(k->consumers[i].name), name) &&
            text_equal(text_of(k->consumers[i].type), type))
            return i;
    return k->count;
}

static void take_member(struct view *view, struct consumer_seen *seen,
                        struct db_rows *row)
{
    struct coordinator *k = view->coordinator;
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
    struct view *view = arg;
    struct coordinator *k = view->coordinator;
    int64_t kind = db_get_int64(row, COLUMN_KIND);
    int64_t partition = db_get_int64(row, COLUMN_PARTITION);
    struct lease_seen *lease;
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
        take_member(view, &view->consumers[at], row);
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

static enum status read_view(struct view *view, struct diag *diag)
{
    struct coordinator *k = view->coordinator;
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
                              &param, 1, take_row, view, diag);
    db_rollback(k->db);
    return status;
}

/* --- deciding ------------------------------------------------------------- */

/* The database sorts by its own rules, and whoever computes must not. */
static void sort_members(struct consumer_seen *seen)
{
    for (size_t i = 1; i < seen->nmembers; i++)
        for (size_t j = i; j > 0 && strcmp(seen->members[j].data,
                                           seen->members[j - 1].data) < 0;
             j--) {
            struct text other = seen->members[j];

            seen->members[j] = seen->members[j - 1];
            seen->members[j - 1] = other;
        }
}

static int index_of(const struct consumer_seen *seen, struct text id)
{
    for (size_t i = 0; i < seen->nmembers; i++)
        if (text_equal(seen->members[i], id))
            return (int)i;
    return RENDEZVOUS_NOBODY;
}

static bool is_mine(const struct coordinator *k, const struct lease_seen *lease)
{
    return lease->instance.data != NULL &&
           text_equal(lease->instance, text_of(k->id));
}

static void add_change(struct coordinator *k,
                       const struct coordinator_change *change)
{
    k->changes = arena_grow(&k->arena, k->changes, k->nchanges,
                            sizeof(*k->changes));
    k->changes[k->nchanges++] = *change;
}

/* What the table says of a lease goes before what memory says. */
static void decide_lease(struct coordinator *k,
                         struct coordinator_consumer *consumer, int partition,
                         const struct lease_seen *lease, bool wanted)
{
    bool mine = is_mine(k, lease);

    leases_set(consumer->leases, partition,
               mine ? lease->generation : LEASE_NONE);
    if (mine && !wanted) {
        consumer->changing = true;
        add_change(k, &(struct coordinator_change){
                          .consumer = consumer,
                          .partition = partition,
                          .generation = lease->generation,
                      });
    } else if (!mine && wanted &&
               (lease->instance.data == NULL || !lease->live)) {
        consumer->changing = true;
        add_change(k, &(struct coordinator_change){
                          .consumer = consumer,
                          .partition = partition,
                          .takes = true,
                          .generation = lease->generation,
                          .lapsed = lease->instance.data != NULL,
                      });
    } else if (!mine && wanted) {
        k->awaits = true;
    }
}

static void decide(struct coordinator *k, struct coordinator_consumer *consumer,
                   struct consumer_seen *seen)
{
    size_t size = (size_t)k->partitions * sizeof(int);
    int *holders = arena_alloc(&k->arena, size);
    int *wanted = arena_alloc(&k->arena, size);
    int self;

    sort_members(seen);
    self = index_of(seen, text_of(k->id));
    for (int p = 0; p < k->partitions; p++) {
        const struct lease_seen *lease = &seen->leases[p];

        holders[p] = lease->instance.data != NULL
                         ? index_of(seen, lease->instance)
                         : RENDEZVOUS_NOBODY;
        k->lacks_rows |= !lease->exists;
    }
    rendezvous_assign(
        &(struct rendezvous){
            .type = consumer->type,
            .name = consumer->name,
            .together = consumer->together,
            .members = seen->members,
            .nmembers = (int)seen->nmembers,
            .partitions = k->partitions,
            .holders = holders,
        },
        wanted);
    for (int p = 0; p < k->partitions; p++)
        decide_lease(k, consumer, p, &seen->leases[p], wanted[p] == self);
}

enum status coordinator_look(struct coordinator *k, bool *acts,
                             struct diag *diag)
{
    struct view view = {.coordinator = k};
    bool mine = true;
    enum status status;

    *acts = false;
    arena_reset(&k->arena);
    k->changes = NULL;
    k->lapsed = NULL;
    k->nchanges = k->nlapsed = 0;
    k->awaits = k->lacks_rows = false;
    for (size_t i = 0; i < k->count; i++)
        k->consumers[i].changing = false;
    status = read_view(&view, diag);
    for (size_t i = 0; status == STATUS_OK && i < k->count; i++)
        mine = mine && (view.consumers[i].mine || k->consumers[i].away);
    if (status != STATUS_OK)
        return status;
    if (!mine) { /* it was taken for dead; what it holds stays its own until
                  * somebody takes it */
        status = coordinator_join(k, diag);
        return status;
    }
    for (size_t i = 0; i < k->count; i++)
        if (!k->consumers[i].away)
            decide(k, &k->consumers[i], &view.consumers[i]);
    look_again(k, view.lapses);
    *acts = k->nchanges > 0 || k->nlapsed > 0;
    return STATUS_OK;
}

/* --- acting --------------------------------------------------------------- */

static enum status write_missing(struct coordinator *k, struct diag *diag)
{
    struct list list = list_make(&k->arena, k->count);

    for (size_t i = 0; i < k->count; i++)
        list_add(&list, &k->consumers[i], 0, 0);
    const struct db_value params[] = {db_texts(list.types, list.count),
                                      db_texts(list.names, list.count),
                                      db_integer(k->partitions)};

    if (!k->lacks_rows || list.count == 0)
        return STATUS_OK;
    return db_queue(k->db, catalog_sql(k->catalog, SQL_OWNERSHIP_INSERT),
                    params, 3, DB_ANY_ROWS, -1, diag);
}

/* Marks which of the wanted leases were locked. */
static enum status lock(struct coordinator *k, const struct list *wanted,
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

static enum status take(struct coordinator *k, const struct list *wanted,
                        bool *locked, struct diag *diag)
{
    struct list taken = list_make(&k->arena, wanted->count);
    enum status status;

    if (wanted->count == 0)
        return STATUS_OK;
    status = lock(k, wanted, locked, diag);
    for (size_t i = 0, at = 0; status == STATUS_OK && i < k->nchanges; i++) {
        if (!k->changes[i].takes)
            continue;
        if (locked[at++])
            list_add(&taken, k->changes[i].consumer, k->changes[i].partition,
                     0);
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
        look_again(k, INT64_MAX / 2);
}

enum status coordinator_act(struct coordinator *k, struct diag *diag)
{
    struct list leaving = list_make(&k->arena, k->nchanges);
    struct list wanted = list_make(&k->arena, k->nchanges);
    bool *locked = arena_alloc_zero(&k->arena, k->nchanges + 1);
    enum status status;

    for (size_t i = 0; i < k->nchanges; i++)
        list_add(k->changes[i].takes ? &wanted : &leaving,
                 k->changes[i].consumer, k->changes[i].partition,
                 k->changes[i].generation);
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

enum status coordinator_leave(struct coordinator *k, struct diag *diag)
{
    const char *id = k->id;
    enum status status;

    if (!k->joined)
        return STATUS_OK;
    status = instance_end(k->db, k->catalog, &id, 1, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < k->count; i++)
        leases_drop_all(k->consumers[i].leases);
    k->joined = false;
    return STATUS_OK;
}
