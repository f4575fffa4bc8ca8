#include "partition/rendezvous.h"

#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>

/* A score that no partition has: of the consumer as a whole. */
#define WHOLE (-1)

/* Spreads the bits of a hash over all of it. */
static uint64_t spread(uint64_t h)
{
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* What the scores of one consumer begin with, and each member's hash. */
struct scores {
    uint64_t consumer;
    uint64_t *members;
};

static uint64_t score(const struct scores *scores, int member, int partition)
{
    return spread(scores->consumer ^ scores->members[member] ^
                  spread((uint64_t)(uint32_t)(partition + 1)));
}

static void scores_init(struct scores *scores, const struct rendezvous *r)
{
    struct buffer name = BUFFER_EMPTY;

    buffer_printf(&name, "%zu %s %s", strlen(r->type), r->type, r->name);
    scores->consumer = spread(hash_fnv1a64(buffer_text(&name)));
    buffer_free(&name);
    scores->members = mem_grow(NULL, (size_t)r->nmembers,
                               sizeof(*scores->members));
    for (int m = 0; m < r->nmembers; m++)
        scores->members[m] = spread(hash_fnv1a64(r->members[m]));
}

/* The member with the highest score among those that have room; equal scores
 * go to the one whose id is lower. */
static int best(const struct scores *scores, int partition, const int *room,
                int nmembers)
{
    int found = RENDEZVOUS_NOBODY;

    for (int m = 0; m < nmembers; m++)
        if ((room == NULL || room[m] > 0) &&
            (found < 0 ||
             score(scores, m, partition) > score(scores, found, partition)))
            found = m;
    return found;
}

struct rank {
    int member;
    int load;
    uint64_t score;
};

static int by_rank(const void *left, const void *right)
{
    const struct rank *a = left;
    const struct rank *b = right;

    if (a->load != b->load)
        return a->load > b->load ? -1 : 1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->member - b->member;
}

/* How many partitions each may have. Whoever has more than others has one more
 * of what does not divide, so that it need not move. */
static void shares(const struct rendezvous *r, const struct scores *scores,
                   const int *loads, int *room)
{
    struct rank *ranks = mem_grow(NULL, (size_t)r->nmembers, sizeof(*ranks));

    for (int m = 0; m < r->nmembers; m++)
        ranks[m] = (struct rank){m, loads[m], score(scores, m, WHOLE)};
    qsort(ranks, (size_t)r->nmembers, sizeof(*ranks), by_rank);
    for (int i = 0; i < r->nmembers; i++)
        room[ranks[i].member] = r->partitions / r->nmembers +
                                (i < r->partitions % r->nmembers ? 1 : 0);
    mem_free(ranks);
}

/* The partition of a member that it has the lowest score with. */
static int weakest(const struct scores *scores, const int *wanted,
                   int partitions, int member)
{
    int found = -1;

    for (int p = 0; p < partitions; p++)
        if (wanted[p] == member &&
            (found < 0 ||
             score(scores, member, p) < score(scores, member, found)))
            found = p;
    return found;
}

static void assign_shares(const struct rendezvous *r,
                          const struct scores *scores, int *wanted)
{
    int *loads = mem_alloc((size_t)r->nmembers * sizeof(*loads));
    int *room = mem_alloc((size_t)r->nmembers * sizeof(*room));

    for (int p = 0; p < r->partitions; p++) {
        wanted[p] = r->holders[p];
        if (wanted[p] != RENDEZVOUS_NOBODY)
            loads[wanted[p]]++;
    }
    shares(r, scores, loads, room);
    for (int m = 0; m < r->nmembers; m++) {
        for (; loads[m] > room[m]; loads[m]--)
            wanted[weakest(scores, wanted, r->partitions, m)] =
                RENDEZVOUS_NOBODY;
        room[m] -= loads[m];
    }
    for (int p = 0; p < r->partitions; p++) {
        if (wanted[p] != RENDEZVOUS_NOBODY)
            continue;
        wanted[p] = best(scores, p, room, r->nmembers);
        room[wanted[p]]--;
    }
    mem_free(loads);
    mem_free(room);
}

void rendezvous_assign(const struct rendezvous *r, int *wanted)
{
    struct scores scores;

    if (r->nmembers == 0) {
        for (int p = 0; p < r->partitions; p++)
            wanted[p] = RENDEZVOUS_NOBODY;
        return;
    }
    scores_init(&scores, r);
    if (r->together)
        for (int p = 0; p < r->partitions; p++)
            wanted[p] = best(&scores, WHOLE, NULL, r->nmembers);
    else
        assign_shares(r, &scores, wanted);
    mem_free(scores.members);
}
