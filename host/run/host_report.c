#include "base/buffer.h"
#include "consumer/retry_turn.h"
#include "consumer/undelivered.h"
#include "run/host_parts.h"

static enum status report_halted(const struct host *host, struct diag *diag)
{
    struct buffer list = BUFFER_EMPTY;
    const struct consumer *first = NULL;
    size_t halted = 0, stays = 0; /* a start does not mend these */

    for (size_t i = 0; i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;

        if (c->row.state != CONSUMER_HALTED)
            continue;
        if (first == NULL)
            first = c;
        buffer_printf(&list, "%s%s '%s' is halted with %s",
                      halted++ > 0 ? ", " : "", c->name.type, c->name.name,
                      halt_reason_word(c->row.halt_reason));
        stays += c->row.halt_reason != HALT_APPLY_ERROR;
    }
    if (stays > 0)
        diag_set(diag, STATUS_FAILED,
                 "%.1500s%s; `moontide status` shows why, and what to do",
                 list.data, list.len > 1500 ? " ..." : "");
    else if (halted > 0)
        diag_set(diag, STATUS_FAILED,
                 "%.1500s%s; `moontide status %s` shows the %s and the script "
                 "%s, and `moontide resume` or the next start tries %s again",
                 list.data, list.len > 1500 ? " ..." : "",
                 halted == 1 ? first->name.name : "CONSUMER",
                 halted == 1 ? "message" : "messages",
                 halted == 1 ? "line" : "lines", halted == 1 ? "it" : "them");
    buffer_free(&list);
    return halted > 0 ? STATUS_FAILED : STATUS_OK;
}

/* In any partition: what another host has in hand, or has left behind when it
 * died, is not done either. */
static enum status next_retry(const struct consumer *c, int64_t *next_at,
                              struct diag *diag)
{
    struct db *db = c->env->db;
    struct leases all;
    enum status status = db_begin_read(db, diag);

    if (status != STATUS_OK)
        return status;
    leases_init(&all, c->leases.partitions);
    for (int p = 0; p < all.partitions; p++)
        all.mine[all.count++] = p;
    status = undelivered_next(db, c->env->catalog, c->row.id, c->source, &all,
                              next_at, diag);
    leases_free(&all);
    db_rollback(db);
    return status;
}

/* What waits for its next attempt comes by itself. */
static enum status report_waiting(const struct host *host, struct diag *diag)
{
    const struct consumer *first = NULL;
    int64_t first_at = INT64_MAX, wait;
    size_t waiting = 0;

    for (size_t i = 0; i < host->nworkers; i++) {
        const struct worker *worker = &host->workers[i];
        const struct consumer *c = &worker->declared.consumer;
        int64_t next_at;
        enum status status;

        if (!worker->started || c->row.state != CONSUMER_RUNNING)
            continue;
        status = next_retry(c, &next_at, diag);
        if (status != STATUS_OK)
            return status;
        /* an attempt that was counted before it was made has no time */
        if (next_at == INT64_MAX && retry_turn_is_awaited(c))
            next_at = c->retries.next_at;
        if (next_at == INT64_MAX)
            continue;
        waiting++;
        if (first == NULL || next_at < first_at) {
            first = c;
            first_at = next_at;
        }
    }
    if (first == NULL)
        return STATUS_OK;
    wait = first_at - consumer_clock(first->env);
    return diag_set(
        diag, STATUS_BUSY,
        "messages of %s '%s'%s wait for another attempt, the next one in "
        "%.1f s; `moontide status %s` shows why, and a run after that tries "
        "again",
        first->name.type, first->name.name, waiting > 1 ? " and others" : "",
        wait > 0 ? (double)wait / (double)CLOCK_SECOND : 0, first->name.name);
}

enum status host_stuck(const struct host *host, struct diag *diag)
{
    for (size_t i = 0; i < host->nworkers; i++) {
        const struct worker *worker = &host->workers[i];

        if (worker->stuck)
            return diag_set(
                diag, worker->trouble.status, "%s '%s' stands still: %s",
                worker->declared.consumer.name.type,
                worker->declared.consumer.name.name, worker->trouble.message);
    }
    return STATUS_OK;
}

void host_tell_trouble(struct host *host, const struct diag *why)
{
    const struct host_options *options = &host->options;
    const struct log *log = &host->app->log;

    if (host->trouble_told == (why != NULL))
        return;
    host->trouble_told = why != NULL;
    if (options->trouble != NULL)
        options->trouble(options->trouble_arg, why);
    else if (why != NULL)
        log_write(log, LOG_ERROR, NULL, "%s; trying again", why->message);
    else
        log_write(log, LOG_INFO, NULL, "the database works again");
}

enum status host_report(const struct host *host, struct diag *diag)
{
    enum status status = report_halted(host, diag);

    return status == STATUS_OK ? report_waiting(host, diag) : status;
}
