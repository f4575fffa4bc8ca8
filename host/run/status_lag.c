#include "run/status_lag.h"

#include "base/memory.h"
#include "run/status.h"
#include "topic/event_page.h"

/* Adds what lies after `after` for the filter's partitions. */
static enum status add(struct application *app, struct status_lag *lag,
                       const struct event_filter *filter, int64_t after,
                       struct diag *diag)
{
    struct event_page page = {.count = 0};
    struct event_range range = {
        .after = after, .upto = lag->upto, .limit = 1, .byte_limit = 1};
    int64_t count = 0;
    int64_t age;
    enum status status = event_page_count(
        app->store, app->db, filter, after, lag->upto,
        STATUS_LAG_LIMIT - lag->messages, &count, diag);

    lag->messages += count;
    if (status != STATUS_OK || count == 0)
        return status;
    status = event_page_read(app->store, app->db, filter, &range, &page, diag);
    if (status == STATUS_OK && page.count > 0) {
        age = lag->now_us - page.messages[0].occurred_at;
        if (age > lag->age_us)
            lag->age_us = age;
    }
    event_page_free(&page);
    return status;
}

/* Partitions that stand at the same position are counted together: a consumer
 * that runs has one or two such groups. */
static enum status add_groups(struct application *app, struct status_lag *lag,
                              struct event_filter *filter, struct diag *diag)
{
    int64_t *group = mem_alloc(lag->count * sizeof(*group));
    enum status status = STATUS_OK;

    filter->partitions = group;
    for (size_t i = 0; status == STATUS_OK && i < lag->count; i++) {
        bool seen = lag->positions[i] >= lag->upto ||
                    lag->messages >= STATUS_LAG_LIMIT;

        for (size_t j = 0; j < i && !seen; j++)
            seen = lag->positions[j] == lag->positions[i];
        if (seen)
            continue;
        filter->npartitions = 0;
        for (size_t j = i; j < lag->count; j++) {
            if (lag->positions[j] == lag->positions[i])
                group[filter->npartitions++] = (int64_t)j;
        }
        status = add(app, lag, filter, lag->positions[i], diag);
    }
    mem_free(group);
    return status;
}

enum status status_lag_read(struct application *app, struct status_lag *lag,
                            struct diag *diag)
{
    struct event_filter filter = {
        .types = lag->declaration->types,
        .ntypes = lag->declaration->ntypes,
        .aggregates = lag->declaration->aggregates,
        .naggregates = lag->declaration->naggregates,
    };

    lag->messages = 0;
    lag->age_us = 0;
    /* with keys of its own it reads every partition of the topic, and its
     * lowest checkpoint is what it has left to do */
    if (lag->declaration->own_key || lag->count == 0)
        return lag->lowest >= lag->upto
                   ? STATUS_OK
                   : add(app, lag, &filter, lag->lowest, diag);
    return add_groups(app, lag, &filter, diag);
}
