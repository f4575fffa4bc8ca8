#include "consumer/poll.h"

#include <assert.h>

/* A partition that is held, and that no message without keys blocks. Those that
 * are read carefully take turns with the others; a key function is called for
 * all of them, so there it is all the same. */
static bool is_read(const struct consumer *c, int partition)
{
    bool careful = c->careful_at[partition].through != CHECKPOINT_NONE;

    return leases_hold(&c->leases, partition) && !c->held.blocked[partition] &&
           (c->own_key || careful == c->careful_turn);
}

/* Of the partitions that are read: the lowest reached position, and the next
 * one above it (or the mark). */
static void find_group(const struct consumer *c, int64_t mark, int64_t *lowest,
                       int64_t *next)
{
    const struct checkpoints *reached = &c->reached;

    *lowest = *next = mark;
    for (int p = 0; p < reached->partitions; p++)
        if (is_read(c, p) && reached->position[p] < *lowest)
            *lowest = reached->position[p];
    for (int p = 0; p < reached->partitions; p++)
        if (is_read(c, p) && reached->position[p] > *lowest &&
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

/* A key function may send any message to any partition, so only the message's
 * own key lets the database leave partitions out. */
static struct event_filter filter_of(const struct consumer *consumer,
                                     const int64_t *partitions, size_t count)
{
    struct event_filter filter = consumer->filter;

    if (!consumer->own_key && count < (size_t)consumer->reached.partitions) {
        filter.partitions = partitions;
        filter.npartitions = count;
    }
    return filter;
}

/* The page behind one of all that is held. Their list lives on, as long as the
 * leases do. */
static bool is_of_all(const struct consumer *consumer, const struct poll *poll)
{
    return poll->npartitions == consumer->leases.count;
}

void poll_announce(struct consumer *consumer, const struct poll *poll,
                   int64_t through)
{
    const struct leases *leases = &consumer->leases;
    struct event_range range = range_of(consumer, through, poll->mark);
    struct event_filter filter = filter_of(consumer, leases->mine,
                                           leases->count);

    if (is_of_all(consumer, poll) && consumer->singly == 0)
        event_page_announce(consumer->topic, consumer->env->db, &filter, &range,
                            &consumer->page);
}

void poll_fetch(struct consumer *consumer, const struct poll *poll)
{
    const struct leases *leases = &consumer->leases;
    struct event_filter filter = filter_of(consumer, leases->mine,
                                           leases->count);

    if (is_of_all(consumer, poll))
        event_page_fetch(consumer->topic, consumer->env->db, &filter,
                         &consumer->page);
}

bool poll_has(const struct poll *poll, int partition)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        if (poll->partitions[i] == partition)
            return true;
    return false;
}

enum status poll_page(struct consumer *consumer, int64_t mark,
                      struct poll *poll, bool *found, struct diag *diag)
{
    const struct checkpoints *reached = &consumer->reached;
    struct event_range range = range_of(consumer, 0, 0);
    struct event_filter filter;

    assert(reached->partitions > 0);
    find_group(consumer, mark, &range.after, &range.upto);
    /* positions start at 1: over an empty topic nothing was read */
    *found = mark > 0 && range.after < mark;
    if (!*found)
        return STATUS_OK;

    arena_reset(&consumer->arena);
    poll->after = range.after;
    poll->upto = range.upto;
    poll->mark = mark;
    poll->npartitions = 0;
    poll->partitions = arena_alloc(&consumer->arena,
                                   (size_t)reached->partitions *
                                       sizeof(*poll->partitions));
    for (int p = 0; p < reached->partitions; p++)
        if (is_read(consumer, p) && reached->position[p] == range.after)
            poll->partitions[poll->npartitions++] = p;

    filter = filter_of(consumer, poll->partitions, poll->npartitions);
    return event_page_read(consumer->topic, consumer->env->db, &filter, &range,
                           &consumer->page, diag);
}

enum status poll_read(struct consumer *consumer, const struct poll *poll,
                      size_t limit, struct diag *diag)
{
    struct event_range range = range_of(consumer, poll->after, poll->mark);
    struct event_filter filter = filter_of(consumer, poll->partitions,
                                           poll->npartitions);

    range.limit = limit;
    return event_page_read(consumer->topic, consumer->env->db, &filter, &range,
                           &consumer->page, diag);
}
