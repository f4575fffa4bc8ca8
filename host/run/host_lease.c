#include "run/host_lease.h"

#include "base/memory.h"
#include "consumer/attempt_slot.h"
#include "consumer/standing.h"
#include "run/host_parts.h"

void host_lease_consumers(struct host *host)
{
    struct host_lease *lease = &host->lease;

    mem_free(lease->consumers);
    lease->consumers = mem_alloc(host->nworkers * sizeof(*lease->consumers) +
                                 1);
    for (size_t i = 0; i < host->nworkers; i++) {
        struct declared_consumer *declared = &host->workers[i].declared;

        lease->consumers[i] = (struct coordinator_consumer){
            .type = declared->consumer.name.type,
            .name = declared->consumer.name.name,
            .together = declared->declaration->single_owner,
            .leases = &declared->consumer.leases,
        };
    }
    lease->coordinator.consumers = lease->consumers;
    lease->coordinator.count = host->nworkers;
    lease->coordinator.outdated = true;
}

/* The coordinator's transactions begin when nothing is in flight. */
static enum status settle(struct host *host, struct diag *diag)
{
    bool undone;

    return flight_settle(&host->flight, &undone, diag);
}

enum status host_lease_open(struct host *host, struct diag *diag)
{
    host_lease_consumers(host);
    return host_lease_step(host, diag);
}

void host_lease_free(struct host *host)
{
    coordinator_free(&host->lease.coordinator);
    mem_free(host->lease.consumers);
    host->lease.consumers = NULL;
}

enum status host_lease_close(struct host *host, struct diag *diag)
{
    enum status status = settle(host, diag);

    if (status == STATUS_OK)
        status = coordinator_leave(&host->lease.coordinator, diag);
    if (status != STATUS_OK || host->options.supervised)
        return status;
    return high_water_mark_leave(host->app->db, host->app->catalog,
                                 host->env.instance, diag);
}

/* Whoever gets a partition need not read empty stretches again. */
static enum status save_changing(struct host *host, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < host->nworkers; i++) {
        struct worker *worker = &host->workers[i];

        if (!host->lease.consumers[i].changing)
            continue;
        status = standing_save(&worker->declared.consumer, &worker->trouble);
        status = host_bear(host, worker, status, diag);
    }
    return status;
}

static enum status look(struct host *host, struct diag *diag)
{
    struct coordinator *coordinator = &host->lease.coordinator;
    bool acts;
    enum status status = coordinator_look(coordinator, &acts, diag);

    if (status != STATUS_OK || !acts)
        return status;
    status = save_changing(host, diag);
    return status == STATUS_OK ? coordinator_act(coordinator, diag) : status;
}

enum status host_lease_step(struct host *host, struct diag *diag)
{
    struct coordinator *coordinator = &host->lease.coordinator;
    enum status status;

    /* a supervisor whose connection is not there yet cannot beat for it */
    coordinator->beats = !host->options.supervised ||
                         !attempt_slot_is_vouched(host->options.slot);
    if (coordinator_left(coordinator) > 0)
        return STATUS_OK;
    status = settle(host, diag);
    if (status == STATUS_OK && coordinator_is_outdated(coordinator))
        status = coordinator_join(coordinator, diag);
    if (status == STATUS_OK)
        status = coordinator_beat(coordinator, diag);
    if (status == STATUS_OK && coordinator_is_due(coordinator))
        status = look(host, diag);
    return status;
}

void host_lease_look_soon(struct host *host)
{
    coordinator_look_soon(&host->lease.coordinator);
}

int64_t host_lease_left(const struct host *host)
{
    return coordinator_left(&host->lease.coordinator);
}

/* --- what others hold ----------------------------------------------------- */

/* Whether a partition that others have read up to `position` holds nothing more
 * that the consumer wants. Of one with a key function every message counts,
 * until whoever holds it has saved how far it came. */
static enum status has_rest(const struct consumer *c, int64_t mark,
                            int64_t partition, int64_t position, bool *rest,
                            struct diag *diag)
{
    struct event_filter filter = c->filter;
    int64_t count = 0;
    enum status status;

    *rest = false;
    if (position >= mark)
        return STATUS_OK;
    if (!c->own_key) {
        filter.partitions = &partition;
        filter.npartitions = 1;
    }
    status = event_page_count(c->topic, c->env->db, &filter, position, mark, 1,
                              &count, diag);
    *rest = count > 0;
    return status;
}

static enum status consumer_done(const struct consumer *c, int64_t mark,
                                 bool *done, struct diag *diag)
{
    struct checkpoint_lock lock = {.epoch = 0};
    struct checkpoints stored;
    enum status status;

    checkpoints_init(&stored, c->stored.partitions);
    status = checkpoint_read(c->env->db, c->env->catalog, c->row.id, c->source,
                             &stored, &lock, diag);
    *done = lock.replay_through == CHECKPOINT_NONE ||
            lock.state != CONSUMER_RUNNING;
    for (int p = 0; status == STATUS_OK && *done && p < stored.partitions &&
                    lock.state == CONSUMER_RUNNING;
         p++) {
        bool rest;

        if (leases_hold(&c->leases, p))
            continue;
        status = has_rest(c, mark, p, stored.position[p], &rest, diag);
        *done = !rest;
    }
    checkpoints_free(&stored);
    return status;
}

enum status host_lease_others_done(struct host *host, bool *done,
                                   struct diag *diag)
{
    enum status status = settle(host, diag);

    *done = true;
    for (size_t i = 0; status == STATUS_OK && *done && i < host->nworkers;
         i++) {
        struct worker *worker = &host->workers[i];
        struct consumer *c = &worker->declared.consumer;

        /* what it cannot apply itself is told, and not waited for */
        if (!worker->started || worker->stuck ||
            c->row.state != CONSUMER_RUNNING || leases_hold_all(&c->leases))
            continue;
        status = db_begin_read(host->app->db, diag);
        if (status == STATUS_OK)
            status = consumer_done(c, worker->topic->watch.mark.mark, done,
                                   diag);
        db_rollback(host->app->db);
    }
    return status;
}
