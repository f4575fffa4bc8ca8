#include "consumer/recorded.h"

#include "consumer/failure.h"

/* What was read over without a message is stored later, and a row may lie
 * there as well. */
static int64_t lowest_stored(const struct consumer *c, const struct poll *poll)
{
    int64_t lowest = poll->after;

    for (size_t i = 0; i < poll->npartitions; i++)
        if (c->stored.position[poll->partitions[i]] < lowest)
            lowest = c->stored.position[poll->partitions[i]];
    return lowest;
}

enum status recorded_read(struct consumer *c, const struct poll *poll,
                          int64_t upto, struct recorded *recorded,
                          struct diag *diag)
{
    return undelivered_recorded(c->env->db, c->env->catalog, c->row.id,
                                c->source, lowest_stored(c, poll), upto,
                                &c->arena, &recorded->rows, &recorded->count,
                                diag);
}

static bool page_meets(const struct consumer *c, int64_t position)
{
    size_t low = 0, high = c->page.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (c->page.messages[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->page.count && c->page.messages[low].position == position;
}

bool recorded_end_page(struct consumer *c, const struct poll *poll,
                       const struct recorded *recorded)
{
    for (size_t i = 0; i < recorded->count; i++) {
        const struct undelivered_recorded *row = &recorded->rows[i];
        int64_t end = row->position > poll->after ? row->position : poll->after;

        if (row->position > c->page.through)
            return false;
        if (!poll_has(poll, row->partition) ||
            row->position <= c->stored.position[row->partition] ||
            page_meets(c, row->position))
            continue;
        while (c->page.count > 0 &&
               c->page.messages[c->page.count - 1].position > end)
            c->page.count--;
        c->page.through = end;
        return true;
    }
    return false;
}

const struct undelivered_recorded *recorded_of(const struct recorded *recorded,
                                               const struct message *message,
                                               struct text key, int partition)
{
    struct text asked = key.data != NULL ? key : TEXT_LITERAL("");

    for (size_t i = 0; i < recorded->count; i++) {
        const struct undelivered_recorded *row = &recorded->rows[i];

        if (row->position == message->position && row->partition == partition &&
            !row->unresolved && text_equal(row->key, asked))
            return row;
    }
    return NULL;
}

const struct undelivered_recorded *
recorded_without_key(const struct recorded *recorded,
                     const struct message *message, const struct poll *poll)
{
    for (size_t i = 0; i < recorded->count; i++) {
        const struct undelivered_recorded *row = &recorded->rows[i];

        if (row->position == message->position && row->unresolved &&
            (poll_has(poll, row->partition) || failure_is_crash(row->reason)))
            return row;
    }
    return NULL;
}

bool recorded_in(const struct recorded *recorded, const struct message *message,
                 int partition)
{
    for (size_t i = 0; i < recorded->count; i++)
        if (recorded->rows[i].position == message->position &&
            recorded->rows[i].unresolved &&
            recorded->rows[i].partition == partition)
            return true;
    return false;
}
