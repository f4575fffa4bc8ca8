#include "run/status_lag.h"

#include "base/memory.h"
#include "run/status.h"
#include "topic/event_census.h"

#define LONG_STRETCH 1000 /* positions: a census is worth it */

struct status_lag_stretch {
    const char *source;
    int64_t after, upto;
    struct event_census census;
};

static enum status count_stretch(struct application *app,
                                 const struct status_lag *lag,
                                 const struct event_census **census,
                                 struct diag *diag)
{
    struct status_lag_counts *counts = lag->counts;
    struct status_lag_stretch *stretch;
    enum status status;

    for (size_t i = 0; i < counts->count; i++) {
        stretch = &counts->list[i];
        *census = &stretch->census;
        if (strcmp(stretch->source, lag->declaration->source) == 0 &&
            stretch->after == lag->lowest && stretch->upto == lag->upto)
            return STATUS_OK;
    }
    counts->list = arena_grow(counts->arena, counts->list, counts->count,
                              sizeof(*counts->list));
    stretch = &counts->list[counts->count];
    stretch->source = lag->declaration->source;
    stretch->after = lag->lowest;
    stretch->upto = lag->upto;
    *census = &stretch->census;
    status = event_census_read(
        topics_find(&app->topics, lag->declaration->source), app->db,
        lag->lowest, lag->upto, STATUS_LAG_LIMIT, counts->arena,
        &stretch->census, diag);
    if (status == STATUS_OK)
        counts->count++;
    return status;
}

static enum status add_age(struct application *app, struct status_lag *lag,
                           const struct event_filter *filter, int64_t after,
                           struct diag *diag)
{
    struct event_page page = {.count = 0};
    struct event_range range = {
        .after = after, .upto = lag->upto, .limit = 1, .byte_limit = 1};
    enum status status = event_page_read(
        topics_find(&app->topics, lag->declaration->source), app->db, filter,
        &range, &page, diag);

    if (status == STATUS_OK && page.count > 0) {
        int64_t age = lag->now_us - page.messages[0].occurred_at;

        if (age > lag->age_us)
            lag->age_us = age;
    }
    event_page_free(&page);
    return status;
}

/* Adds what lies after `after` for the filter's partitions. */
static enum status add(struct application *app, struct status_lag *lag,
                       const struct event_filter *filter, int64_t after,
                       struct diag *diag)
{
    int64_t count = 0;
    enum status status = event_page_count(
        topics_find(&app->topics, lag->declaration->source), app->db, filter,
        after, lag->upto, STATUS_LAG_LIMIT - lag->messages, &count, diag);

    lag->messages += count;
    if (status != STATUS_OK || count == 0)
        return status;
    return add_age(app, lag, filter, after, diag);
}

/* All partitions after the lowest position; of a long stretch by the census of
 * it, which others may have asked for. */
static enum status add_all(struct application *app, struct status_lag *lag,
                           const struct event_filter *filter, struct diag *diag)
{
    const struct event_census *census;
    int64_t first;
    enum status status;

    if (lag->lowest >= lag->upto)
        return STATUS_OK;
    if (lag->counts == NULL || lag->upto - lag->lowest < LONG_STRETCH)
        return add(app, lag, filter, lag->lowest, diag);
    status = count_stretch(app, lag, &census, diag);
    if (status != STATUS_OK)
        return status;
    if (!census->whole)
        return add(app, lag, filter, lag->lowest, diag);
    event_census_match(census, filter, &lag->messages, &first);
    return first == 0 ? STATUS_OK : add_age(app, lag, filter, first - 1, diag);
}

static bool stands_together(const struct status_lag *lag)
{
    for (size_t i = 0; i < lag->count; i++)
        if (lag->positions[i] != lag->lowest)
            return false;
    return true;
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
        .types = lag->declaration->stored,
        .ntypes = lag->declaration->nstored,
        .aggregates = lag->declaration->aggregates,
        .naggregates = lag->declaration->naggregates,
    };

    lag->messages = 0;
    lag->age_us = 0;
    /* with keys of its own it reads every partition of the topic, and its
     * lowest checkpoint is what it has left to do */
    if (lag->declaration->own_key || stands_together(lag))
        return add_all(app, lag, &filter, diag);
    return add_groups(app, lag, &filter, diag);
}
