/* Orchestrated sagas among receivers that do and undo things, over a network
 * that delays, reorders and repeats but loses nothing: whatever happens, all
 * steps have taken effect at the end, or none has. */
#include "saga_steps_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define WALKS      20000
#define FLIGHT_MAX 256
#define IDS_MAX    32

/* A message under way: to a receiver, or its answer. */
struct letter {
    struct uuid id; /* of the command or the compensation */
    size_t step;
    bool compensation, answer, declined;
};

/* What a receiver has answered to an id, which it answers again. */
struct record {
    struct uuid id;
    bool declined;
};

struct world {
    const struct saga *saga;
    struct arena arena;
    struct saga_steps steps;
    struct letter flight[FLIGHT_MAX];
    size_t count;
    struct record known[IDS_MAX];
    size_t nknown;
    int effects[RULES_MAX]; /* what each step has done and not undone */
    bool told;              /* answers say what they answer */
    int64_t due_at;
    enum saga_steps_end end;
    size_t ends, timeouts, declines;
    uint64_t random;
};

static uint64_t draw(struct world *world, uint64_t below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (world->random >> 11) % below;
}

static void send(struct world *world, struct letter letter)
{
    assert_true(world->count < FLIGHT_MAX);
    world->flight[world->count++] = letter;
}

static void carry_out(struct world *world, const struct saga_steps_turn *turn)
{
    if (turn->deadline_changed)
        world->due_at = turn->deadline_at;
    for (size_t i = 0; i < turn->nsends; i++) {
        const struct saga_steps_send *s = &turn->sends[i];
        const struct saga_step_row *row = &world->steps.rows[s->row];

        send(world,
             (struct letter){
                 .id = s->compensation ? row->compensation_id : row->command_id,
                 .step = row->step,
                 .compensation = s->compensation,
             });
    }
    if (turn->end != SAGA_STEPS_GOES_ON) {
        world->ends++;
        world->end = turn->end;
        world->steps.ended = true;
    }
}

static struct record *find(struct world *world, const struct uuid *id)
{
    for (size_t i = 0; i < world->nknown; i++)
        if (uuid_equal(&world->known[i].id, id))
            return &world->known[i];
    return NULL;
}

/* A receiver does each id once. Half of the steps that can be declined are, in
 * walks that are meant to fail. */
static void receive(struct world *world, const struct letter *letter,
                    uint64_t odds)
{
    struct record *record = find(world, &letter->id);
    struct letter answer = *letter;

    if (record == NULL) {
        const struct saga_step_rule *rule = &world->saga->rules[letter->step];

        assert_true(world->nknown < IDS_MAX);
        record = &world->known[world->nknown++];
        *record = (struct record){
            .id = letter->id,
            .declined = !letter->compensation && rule->nfails > 0 &&
                        !rule->retriable && odds > 0 && draw(world, odds) == 0,
        };
        world->declines += record->declined;
        if (letter->compensation)
            world->effects[letter->step] = 0; /* or there is nothing to undo */
        else
            world->effects[letter->step] += !record->declined;
    }
    answer.answer = true;
    answer.declined = record->declined;
    send(world, answer);
}

static void hear(struct world *world, const struct letter *letter)
{
    struct saga_steps_turn turn;
    struct saga_steps_reply reply = {
        .type = letter->compensation ? UNDONE[letter->step]
                : letter->declined   ? NO[letter->step]
                                     : YES[letter->step],
        .command_id = world->told ? &letter->id : NULL,
    };

    saga_steps_reply(&world->steps, &reply, &turn);
    carry_out(world, &turn);
}

/* Takes any letter; sometimes it stays to come again. */
static void deliver(struct world *world, uint64_t repeats, uint64_t odds)
{
    size_t at = (size_t)draw(world, world->count);
    struct letter letter = world->flight[at];

    if (repeats == 0 || draw(world, repeats) != 0)
        world->flight[at] = world->flight[--world->count];
    if (letter.answer)
        hear(world, &letter);
    else
        receive(world, &letter, odds);
}

static void time_out(struct world *world)
{
    struct saga_steps_turn turn;

    world->steps.now = world->due_at;
    saga_steps_overdue(&world->steps, &turn);
    assert_true(turn.taken);
    world->timeouts++;
    carry_out(world, &turn);
}

static void walk(struct world *world, uint64_t seed)
{
    uint64_t odds, silences, limit;
    struct saga_steps_turn turn;

    world->random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    odds = draw(world, 3) * 2;     /* never, often, or seldom */
    silences = draw(world, 3) * 4; /* the same */
    limit = draw(world, 4);
    world->told = draw(world, 2) == 0;
    saga_steps_start(&world->steps, &turn);
    carry_out(world, &turn);
    for (int step = 0; step < 60 && world->count > 0; step++)
        if (world->due_at != 0 && silences > 0 && world->timeouts < limit &&
            draw(world, silences) == 0)
            time_out(world);
        else
            deliver(world, 6, odds);
    while (world->count > 0) /* what was delayed arrives in the end */
        deliver(world, 0, odds);
}

static void check(const struct world *world, uint64_t seed)
{
    bool done = world->end == SAGA_STEPS_COMPLETED;

    if (world->ends != 1 || world->due_at != 0)
        fail_msg("walk %zu: %zu ends, due at %lld", (size_t)seed, world->ends,
                 (long long)world->due_at);
    for (size_t i = 0; i < world->saga->count; i++) {
        const struct saga_step_rule *rule = &world->saga->rules[i];

        if ((done || rule->compensated || rule->pivot) &&
            world->effects[i] != done)
            fail_msg("walk %zu: step %zu took effect %d times, the saga %s",
                     (size_t)seed, i, world->effects[i],
                     done ? "completed" : "was cancelled");
    }
}

static void walk_all(const unsigned *kinds, size_t count)
{
    const struct saga saga = saga_of(kinds, count);
    size_t completed = 0, late = 0, declined = 0;

    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        struct world world = {.saga = &saga};

        world.steps = steps_of(&saga, &world.arena);
        walk(&world, seed);
        check(&world, seed);
        completed += world.end == SAGA_STEPS_COMPLETED;
        declined += world.declines > 0;
        for (size_t i = 0; i < world.steps.nrows; i++)
            late += world.steps.rows[i].round > 1;
        arena_free(&world.arena);
    }
    print_message("%d walks: %zu completed, %zu with a refusal, %zu late "
                  "successes\n",
                  WALKS, completed, declined, late);
    assert_true(completed > 0 && completed < WALKS && declined > 0);
    if (saga.rules[0].compensated)
        assert_true(late > 0);
}

static void all_steps_take_effect_or_none_does(void **state)
{
    static const unsigned plain[] = {PLAIN, PLAIN, PLAIN, PLAIN};
    static const unsigned pivot[] = {PLAIN, PLAIN, PIVOT, RETRIABLE,
                                     RETRIABLE | STAGED};
    static const unsigned first[] = {PIVOT, RETRIABLE, RETRIABLE};
    static const unsigned mixed[] = {PLAIN, UNNEEDED, UNNEEDED | STAGED, PIVOT};

    (void)state;
    walk_all(plain, 4);
    walk_all(pivot, 5);
    walk_all(first, 3);
    walk_all(mixed, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_steps_take_effect_or_none_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
