#include "partition/coordinator.h"

#include "base/clock.h"
#include "base/memory.h"
#include "partition/coordinator_parts.h"
#include "partition/coordinator_view.h"
#include "partition/instance.h"
#include "partition/lease_list.h"
#include "partition/rendezvous.h"

#include <stdio.h>

/* Something that is on its way is looked for so often within the time of a
 * heartbeat, which the hand-over of a partition is to stay below. */
#define LOOKS_PER_BEAT 10
#define LOOK_PAUSE_MIN (CLOCK_SECOND / 100)

/* One that is about to lapse is looked at a moment later. */
#define LAPSE_GRACE (CLOCK_SECOND / 200)

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

/* --- joining -------------------------------------------------------------- */

static enum status write_rows(struct coordinator *k, struct diag *diag)
{
    struct lease_list list = lease_list_make(&k->arena, k->count);
    enum status status = instance_write(k->db, k->catalog, k->id,
                                        k->times.duration, diag);

    for (size_t i = 0; i < k->count; i++)
        if (!k->consumers[i].away)
            lease_list_add(&list, k->consumers[i].type, k->consumers[i].name, 0,
                           0);
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

void coordinator_look_again(struct coordinator *k, int64_t lapses)
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

/* --- deciding ------------------------------------------------------------- */

/* The database sorts by its own rules, and whoever computes must not. */
static void sort_members(struct coordinator_seen *seen)
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

static int index_of(const struct coordinator_seen *seen, struct text id)
{
    for (size_t i = 0; i < seen->nmembers; i++)
        if (text_equal(seen->members[i], id))
            return (int)i;
    return RENDEZVOUS_NOBODY;
}

static bool is_mine(const struct coordinator *k,
                    const struct coordinator_lease *lease)
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
                         const struct coordinator_lease *lease, bool wanted)
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
                   struct coordinator_seen *seen)
{
    size_t size = (size_t)k->partitions * sizeof(int);
    int *holders = arena_alloc(&k->arena, size);
    int *wanted = arena_alloc(&k->arena, size);
    int self;

    sort_members(seen);
    self = index_of(seen, text_of(k->id));
    for (int p = 0; p < k->partitions; p++) {
        const struct coordinator_lease *lease = &seen->leases[p];

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
    struct coordinator_view view;
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
    status = coordinator_view_read(k, &view, diag);
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
    coordinator_look_again(k, view.lapses);
    *acts = k->nchanges > 0 || k->nlapsed > 0;
    return STATUS_OK;
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
