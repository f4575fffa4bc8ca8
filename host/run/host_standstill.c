#include "run/host_parts.h"

/* One that was tried again for nothing takes its partitions from others each
 * time, so it is not tried as often as that could be noticed. */
#define STILL_MIN_US (CLOCK_SECOND / 4)
#define STILL_MAX_US (4 * CLOCK_SECOND)

static void stay_away(struct host *host, const struct worker *worker, bool away)
{
    coordinator_stay_away(&host->lease.coordinator,
                          (size_t)(worker - host->workers), away);
}

void host_stand_still(struct host *host, struct worker *worker)
{
    const struct consumer *consumer = &worker->declared.consumer;

    if (worker->still.cap_us == 0)
        worker->still = backoff_make(STILL_MIN_US, STILL_MAX_US);
    worker->stuck = true;
    worker->still_until = clock_monotonic() + backoff_next(&worker->still);
    stay_away(host, worker, true);
    if (!worker->stuck_told)
        log_write(&host->app->log, LOG_ERROR,
                  &(struct log_about){.consumer = consumer->name.name,
                                      .topic = consumer->source},
                  "stands still: %s", worker->trouble.message);
    worker->stuck_told = true;
}

enum status host_bear(struct host *host, struct worker *worker,
                      enum status status, struct diag *diag)
{
    if (status == STATUS_OK)
        return STATUS_OK;
    if (backoff_helps(status))
        return diag_set(
            diag, status, "%s '%s': %s", worker->declared.consumer.name.type,
            worker->declared.consumer.name.name, worker->trouble.message);
    host_stand_still(host, worker);
    return STATUS_OK;
}

/* What cannot even begin takes nothing from those that can. */
static enum status begin_again(struct host *host, struct worker *worker)
{
    enum status status;

    if (!worker->started)
        return host_start_late(host, worker, &worker->trouble);
    status = consumer_reload(&worker->declared.consumer, &worker->trouble);
    worker->reload = status != STATUS_OK;
    if (status == STATUS_OK)
        status = consumer_check(&worker->declared.consumer, &worker->trouble);
    return status;
}

enum status host_end_standstills(struct host *host, struct diag *diag)
{
    int64_t now = clock_monotonic();

    for (size_t i = 0; i < host->nworkers; i++) {
        struct worker *worker = &host->workers[i];
        enum status status;

        if (!worker->stuck || now < worker->still_until)
            continue;
        worker->stuck = false;
        status = host_bear(host, worker, begin_again(host, worker), diag);
        worker->stuck |= status != STATUS_OK;
        if (status != STATUS_OK)
            return status;
        if (worker->stuck)
            continue;
        stay_away(host, worker, false);
    }
    return STATUS_OK;
}
