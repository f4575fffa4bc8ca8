#include "base/memory.h"
#include "model/read_model_fill.h"
#include "run/host_parts.h"
#include "topic/read_model_off.h"
#include "topic/read_model_switch.h"

/* How long a switch that met another one, or a batch, is tried again. */
#define SWITCH_FOR_US (2 * CLOCK_SECOND)

/* How long the rest after a batch of what is left may be. */
#define REST_MOST_US (CLOCK_SECOND / 20)

/* What is left of a topic that was switched off goes before it is on again: a
 * batch of it with each round, and then a rest as long as that took. */
static enum status empty_some(struct host *host, const char *projection,
                              bool *left, struct diag *diag)
{
    struct application *app = host->app;
    int64_t began = clock_monotonic();
    int64_t deleted, took;
    enum status status;

    status = read_model_off_empty(app->db, app->catalog, projection, &deleted,
                                  left, diag);
    took = clock_monotonic() - began;
    if (*left)
        host->fill.rests_until = began + took +
                                 (took < REST_MOST_US ? took : REST_MOST_US);
    return status;
}

/* In turns with whoever else switches it: who holds a lock may hold it for
 * ever. *left is set when there are messages to be deleted before. */
static enum status switch_until(struct host *host, const char *projection,
                                bool *switched, bool *left, struct diag *diag)
{
    struct application *app = host->app;
    int64_t end = clock_monotonic() + SWITCH_FOR_US;
    enum status status, cleared;

    *left = false;
    do {
        status = read_model_switch_on(app->db, app->catalog, projection,
                                      clock_now(&app->clock), switched, diag);
        if (status != STATUS_CONFLICT)
            return status;
        cleared = empty_some(host, projection, left, diag);
        if (cleared != STATUS_CONFLICT && (cleared != STATUS_OK || *left))
            return cleared;
    } while (clock_monotonic() < end);
    return status;
}

static void tell_left(struct host *host, const char *projection)
{
    host->fill.empties = true;
    if (!host->fill.left_told)
        log_write(&host->app->log, LOG_INFO,
                  &(struct log_about){.consumer = projection},
                  "its topic was switched off and holds messages still; they "
                  "are deleted before it is on again");
    host->fill.left_told = true;
}

static enum status switch_on(struct host *host, const char *projection,
                             bool *ready, struct diag *diag)
{
    struct application *app = host->app;
    bool switched = false, left = false, undone;
    enum status status;

    *ready = clock_monotonic() >= host->fill.rests_until;
    host->fill.empties |= !*ready;
    if (!*ready)
        return STATUS_OK;
    status = flight_settle(&host->flight, &undone, diag);
    if (status == STATUS_OK)
        status = read_model_positions_mend(app->db, app->catalog, projection,
                                           diag);
    if (status == STATUS_OK)
        status = switch_until(host, projection, &switched, &left, diag);
    *ready = status == STATUS_OK && !left;
    if (status == STATUS_OK && left)
        tell_left(host, projection);
    if (status != STATUS_OK || !switched)
        return status;
    host->fill.left_told = false;
    host_fill_forget(host);
    log_write(&app->log, LOG_INFO, &(struct log_about){.consumer = projection},
              "its read models go to the topic " TOPIC_READ_MODEL
              "%s from now on; those that are there are filled in",
              projection);
    return STATUS_OK;
}

static enum status is_filled(struct host *host, const char *projection,
                             bool *filled, struct diag *diag)
{
    struct application *app = host->app;
    struct arena arena = ARENA_EMPTY;
    struct read_model_switch state = {.on = false};
    enum status status = db_begin_read(app->db, diag);

    if (status == STATUS_OK)
        status = read_model_switch_read(app->db, app->catalog, projection,
                                        &arena, &state, diag);
    db_rollback(app->db);
    *filled = state.filled;
    arena_free(&arena);
    return status;
}

enum status host_switch_source(struct host *host,
                               const struct declaration *declaration,
                               bool *ready, struct diag *diag)
{
    const char *read = read_model_topic_projection(declaration->source);
    enum status status;

    *ready = true;
    if (read == NULL)
        return STATUS_OK;
    status = switch_on(host, read, ready, diag);
    if (status == STATUS_OK && *ready && declaration->starts_now)
        status = is_filled(host, read, ready, diag);
    return status;
}

enum status host_keep_source(struct host *host,
                             const struct declaration *declaration, bool *ready,
                             struct diag *diag)
{
    struct application *app = host->app;
    const char *read = read_model_topic_projection(declaration->source);
    bool on = true;
    enum status status;

    *ready = true;
    if (read == NULL)
        return STATUS_OK;
    status = db_begin(app->db, diag);
    if (status == STATUS_OK)
        status = read_model_switch_hold(app->db, app->catalog, read, &on, diag);
    db_rollback(app->db);
    return status != STATUS_OK || on ? status
                                     : switch_on(host, read, ready, diag);
}

enum status host_switch_own(struct host *host,
                            const struct declaration *declaration, bool *ready,
                            struct diag *diag)
{
    *ready = true;
    return declaration->topic ? switch_on(host, declaration->name, ready, diag)
                              : STATUS_OK;
}

bool host_fill_empties(struct host *host, bool rest)
{
    int64_t us = host->fill.rests_until - clock_monotonic();
    bool empties = host->fill.empties;

    host->fill.empties = false;
    if (empties && rest && us > 0)
        host_pause(host, us);
    return empties;
}

void host_fill_forget(struct host *host)
{
    mem_free(host->fill.lists);
    host->fill.lists = NULL;
    host->fill.count = 0;
    host->fill.known = false;
}

/* Only of a projection that is declared here it is known where its read models
 * are. */
static void take_unfilled(void *arg, struct text projection)
{
    struct host *host = arg;
    struct host_fill *fill = &host->fill;

    for (size_t i = 0; i < host->nworkers; i++) {
        const struct declaration *d = host->workers[i].declared.declaration;

        if (d->kind != DECLARATION_PROJECTION ||
            !text_equal(text_of(d->name), projection))
            continue;
        fill->lists = mem_grow(fill->lists, fill->count + 1,
                               sizeof(const struct declaration *));
        fill->lists[fill->count++] = d;
    }
}

static enum status find_unfilled(struct host *host, struct diag *diag)
{
    struct application *app = host->app;
    enum status status = db_begin_read(app->db, diag);

    host_fill_forget(host);
    if (status == STATUS_OK)
        status = read_model_switch_unfilled(app->db, app->catalog,
                                            take_unfilled, host, diag);
    db_rollback(app->db);
    host->fill.known = status == STATUS_OK;
    return status;
}

/* What does not pass by itself is told, and tried again with the next look. */
static enum status give_up(struct host *host, const char *projection,
                           const struct diag *diag)
{
    if (!host->fill.told)
        log_write(&host->app->log, LOG_ERROR,
                  &(struct log_about){.consumer = projection},
                  "its topic cannot be filled: %s", diag->message);
    host->fill.told = true;
    host->fill.count = 0;
    return STATUS_OK;
}

enum status host_fill_topics(struct host *host, bool *worked, struct diag *diag)
{
    struct application *app = host->app;
    struct host_fill *fill = &host->fill;
    struct read_model_fill one = {
        .names = &app->settings->names,
        .catalog = app->catalog,
        .clock = &app->clock,
        .partitions = app->settings->partitions,
        .notify = app->settings->notify,
    };
    bool undone, more = false;
    enum status status = STATUS_OK;

    if (fill->known && fill->count == 0)
        return STATUS_OK;
    status = flight_settle(&host->flight, &undone, diag);
    if (status == STATUS_OK && !fill->known)
        status = find_unfilled(host, diag);
    if (status != STATUS_OK || fill->count == 0)
        return status;
    one.declaration = fill->lists[fill->count - 1];
    status = read_model_fill_batch(&one, app->db, &more, diag);
    if (status != STATUS_OK && !backoff_helps(status))
        return give_up(host, one.declaration->name, diag);
    if (status != STATUS_OK)
        return status;
    fill->told = false;
    fill->count -= !more;
    *worked = true;
    return STATUS_OK;
}
