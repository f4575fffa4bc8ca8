#include "topic/event_census.h"

#include "topic/topic_parts.h"

struct taking {
    struct arena *arena;
    struct event_census *census;
    int64_t taken;
};

static enum status take_group(void *arg, struct db_rows *row, struct diag *diag)
{
    struct taking *taking = arg;
    struct event_census *census = taking->census;
    struct event_census_group *group;

    (void)diag;
    census->groups = arena_grow(taking->arena, census->groups, census->ngroups,
                                sizeof(*census->groups));
    group = &census->groups[census->ngroups++];
    *group = (struct event_census_group){
        .type = arena_copy(taking->arena, db_get_text(row, 0)),
        .aggregate_type = db_is_null(row, 1)
                              ? TEXT_NONE
                              : arena_copy(taking->arena, db_get_text(row, 1)),
        .count = db_get_int64(row, 2),
        .first = db_get_int64(row, 3),
    };
    taking->taken += group->count;
    return STATUS_OK;
}

enum status event_census_read(struct topic *topic, struct db *db, int64_t after,
                              int64_t upto, int64_t limit, struct arena *arena,
                              struct event_census *census, struct diag *diag)
{
    const struct db_value params[] = {db_integer(after), db_integer(upto),
                                      db_integer(limit),
                                      db_string(topic->label)};
    struct taking taking = {.arena = arena, .census = census};
    enum status status = STATUS_OK;

    *census = (struct event_census){.whole = true};
    for (size_t t = 0; t < topic->ntables && census->whole; t++) {
        status = db_rows_each(db, &topic->tables[t].census, params,
                              topic->kind->shared ? 4 : 3, take_group, &taking,
                              diag);
        if (status != STATUS_OK)
            return status;
        census->whole = taking.taken < limit;
    }
    return STATUS_OK;
}

static bool holds(const struct text *list, size_t count, struct text item)
{
    bool found = count == 0;

    for (size_t i = 0; i < count && !found; i++)
        found = text_equal(list[i], item);
    return found;
}

void event_census_match(const struct event_census *census,
                        const struct event_filter *filter, int64_t *count,
                        int64_t *first)
{
    *count = *first = 0;
    for (size_t i = 0; i < census->ngroups; i++) {
        const struct event_census_group *group = &census->groups[i];

        if (!holds(filter->types, filter->ntypes, group->type) ||
            !holds(filter->aggregates, filter->naggregates,
                   group->aggregate_type))
            continue;
        *count += group->count;
        if (*first == 0 || group->first < *first)
            *first = group->first;
    }
}
