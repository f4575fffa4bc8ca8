#include "consumer/poll.h"

#include <assert.h>

/* Of the partitions that no message without keys blocks: the lowest reached
 * position, and the next one above it (or the mark). */
static void find_group(const struct consumer *c, int64_t mark, int64_t *lowest,
                       int64_t *next)
{
    const struct checkpoints *reached = &c->reached;

    *lowest = *next = mark;
    for (int p = 0; p < reached->partitions; p++)
        if (!c->held.blocked[p] && reached->position[p] < *lowest)
            *lowest = reached->position[p];
    for (int p = 0; p < reached->partitions; p++)
        if (!c->held.blocked[p] && reached->position[p] > *lowest &&
            reached->position[p] < *next)
            *next = reached->position[p];
}

static struct event_range range_of(const struct consumer *consumer,
                                   int64_t after, int64_t upto)
{
    return (struct event_range){
        .after = after,
        .upto = upto,
        .limit = consumer->singly > 0 ? 1 : consumer->limit,
        .byte_limit = consumer->env->batch_bytes,
    };
}

void poll_announce(struct consumer *consumer, const struct poll *poll,
                   int64_t through)
{
    struct event_range range = range_of(consumer, through, poll->mark);

    if (poll->npartitions == (size_t)consumer->reached.partitions &&
        consumer->singly == 0)
        event_page_announce(event_store_topic(consumer->env->store),
                            consumer->env->db, &consumer->filter, &range,
                            &consumer->page);
}

enum status poll_page(struct consumer *consumer, int64_t mark,
                      struct poll *poll, bool *found, struct diag *diag)
{
    const struct checkpoints *reached = &consumer->reached;
    struct event_filter filter = consumer->filter;
    struct event_range range = range_of(consumer, 0, 0);

    assert(reached->partitions > 0);
    find_group(consumer, mark, &range.after, &range.upto);
    /* positions start at 1: over an empty topic nothing was read */
    *found = mark > 0 && range.after < mark;
    if (!*found)
        return STATUS_OK;

    arena_reset(&consumer->arena);
    poll->after = range.after;
    poll->mark = mark;
    poll->npartitions = 0;
    poll->partitions = arena_alloc(&consumer->arena,
                                   (size_t)reached->partitions *
                                       sizeof(*poll->partitions));
    for (int p = 0; p < reached->partitions; p++)
        if (!consumer->held.blocked[p] && reached->position[p] == range.after)
            poll->partitions[poll->npartitions++] = p;

    /* A key function may send any message to any partition, so only the
     * message's own key lets the database leave partitions out. */
    if (!consumer->own_key && poll->npartitions < (size_t)reached->partitions) {
        filter.partitions = poll->partitions;
        filter.npartitions = poll->npartitions;
    }
    return event_page_read(event_store_topic(consumer->env->store),
                           consumer->env->db, &filter, &range, &consumer->page,
                           diag);
}
