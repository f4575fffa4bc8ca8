/* Every order of events over several declarations: all states that a saga can
 * get into are found, and every event is played in each of them. */
#include "base/map.h"
#include "saga_steps_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROWS_MAX 12

/* A state that was reached. */
struct node {
    struct saga_step_row rows[ROWS_MAX];
    size_t nrows;
    bool ended, completed;
};

enum play {
    PLAY_START,
    PLAY_YES,
    PLAY_NO,
    PLAY_UNDONE,
    PLAY_UNDONE_TOLD, /* it says which round's */
    PLAY_SILENCE,
    PLAY_RETRY,
    PLAY_CONFIRM,
    PLAYS
};

struct event {
    enum play play;
    size_t step;
    int round;
};

struct search {
    const struct saga *saga;
    struct arena arena; /* of one event */
    struct arena keys;
    struct map seen;
    struct node *nodes;
    size_t count, capacity;
    size_t played, late, cancelled, completed;
};

/* --- playing -------------------------------------------------------------- */

static struct uuid expected_id(const char *step, const char *kind, int round)
{
    char name[64];

    snprintf(name, sizeof(name), "%s/%s/%d", step, kind, round);
    return uuid_v5(&INSTANCE, text_of(name));
}

static struct saga_steps load(struct search *search, const struct node *node)
{
    struct saga_steps steps = steps_of(search->saga, &search->arena);

    steps.ended = node->ended;
    for (size_t i = 0; i < node->nrows; i++) {
        steps.rows = arena_grow(&search->arena, steps.rows, i,
                                sizeof(*steps.rows));
        steps.rows[i] = node->rows[i];
        steps.rows[i].made = steps.rows[i].changed = false;
    }
    steps.nrows = node->nrows;
    return steps;
}

static void play(struct saga_steps *steps, struct event event,
                 struct saga_steps_turn *turn)
{
    struct saga_steps_reply reply = {.type = TEXT_NONE};
    struct uuid id;

    switch (event.play) {
    case PLAY_START:
        saga_steps_start(steps, turn);
        return;
    case PLAY_SILENCE:
        saga_steps_overdue(steps, turn);
        return;
    case PLAY_RETRY:
        saga_steps_retry(steps, turn);
        return;
    case PLAY_CONFIRM:
        saga_steps_confirm(steps, steps->rules[event.step].name, turn);
        return;
    case PLAY_YES:
        reply.type = YES[event.step];
        break;
    case PLAY_NO:
        reply.type = NO[event.step];
        break;
    default:
        reply.type = UNDONE[event.step];
        id = expected_id(steps->rules[event.step].name.data, "compensation",
                         event.round);
        if (event.play == PLAY_UNDONE_TOLD)
            reply.cause = &id;
        break;
    }
    saga_steps_reply(steps, &reply, turn);
}

/* --- what must hold ------------------------------------------------------- */

static bool awaited(const struct saga_step_row *row)
{
    return row->state == SAGA_STEP_SENT || row->state == SAGA_STEP_OVERDUE ||
           row->state == SAGA_STEP_COMPENSATING ||
           row->state == SAGA_STEP_STUCK;
}

static bool back(const struct saga_step_row *row)
{
    return row->state == SAGA_STEP_FAILED ||
           row->state == SAGA_STEP_TIMED_OUT ||
           row->state == SAGA_STEP_COMPENSATING ||
           row->state == SAGA_STEP_STUCK || row->state == SAGA_STEP_COMPENSATED;
}

static bool to_undo(const struct saga *saga, const struct saga_step_row *row)
{
    return saga->rules[row->step].compensated &&
           (row->state == SAGA_STEP_SUCCEEDED ||
            row->state == SAGA_STEP_TIMED_OUT);
}

/* One thing is under way at most, and while the saga runs, one is. */
static void check_awaited(const struct saga_steps *after)
{
    size_t count = 0;

    for (size_t i = 0; i < after->nrows; i++) {
        count += awaited(&after->rows[i]);
        assert_int_equal(after->rows[i].deadline_at != 0,
                         awaited(&after->rows[i]));
    }
    assert_true(count <= 1);
    if (!after->ended && after->nrows > 0)
        assert_int_equal(count, 1);
}

static void check_deadline(const struct node *before,
                           const struct saga_steps *after,
                           const struct saga_steps_turn *turn)
{
    const struct saga_step_row *row = saga_steps_awaited(after);
    int64_t was = 0;

    for (size_t i = 0; i < before->nrows; i++)
        was += before->rows[i].deadline_at;
    assert_int_equal(turn->deadline_changed ? turn->deadline_at : was,
                     row != NULL ? row->deadline_at : 0);
}

/* A step sends forward when all before it have succeeded, and back when all
 * behind it is undone. */
static void check_send(const struct node *before,
                       const struct saga_steps *after, const struct saga *saga,
                       const struct saga_steps_send *send)
{
    const struct saga_step_row *row = &after->rows[send->row];
    struct uuid id = expected_id(
        saga->rules[row->step].name.data,
        send->compensation ? "compensation" : "command", row->round);
    bool sent = false;

    assert_true(uuid_equal(
        send->compensation ? &row->compensation_id : &row->command_id, &id));
    for (size_t i = 0; i < before->nrows; i++) {
        const struct saga_step_row *r = &before->rows[i];

        sent |= send->compensation ? r->has_compensation_id &&
                                         uuid_equal(&r->compensation_id, &id)
                                   : uuid_equal(&r->command_id, &id);
    }
    assert_int_equal(send->again, sent);
    if (!send->again && !send->compensation)
        assert_int_equal(row->round, 1);
    for (size_t i = 0; i < after->nrows; i++) {
        const struct saga_step_row *r = &after->rows[i];

        if (send->compensation) {
            assert_false(!send->again && r->step > row->step &&
                         to_undo(saga, r));
            assert_false(saga->rules[r->step].pivot && r->round == 1 &&
                         r->state == SAGA_STEP_SUCCEEDED);
        } else {
            assert_false(back(r));
            if (r->step < row->step)
                assert_int_equal(r->state, SAGA_STEP_SUCCEEDED);
        }
    }
}

static void check_pivotal(const struct saga_steps *after,
                          const struct saga *saga)
{
    for (size_t i = 0; i < after->nrows; i++) {
        const struct saga_step_row *r = &after->rows[i];
        const struct saga_step_rule *rule = &saga->rules[r->step];

        if (rule->retriable)
            assert_true(r->state == SAGA_STEP_SENT ||
                        r->state == SAGA_STEP_OVERDUE ||
                        r->state == SAGA_STEP_SUCCEEDED);
        if (rule->pivot)
            assert_false(r->state == SAGA_STEP_TIMED_OUT ||
                         r->state == SAGA_STEP_COMPENSATING ||
                         r->state == SAGA_STEP_STUCK ||
                         r->state == SAGA_STEP_COMPENSATED);
        if (!rule->compensated)
            assert_false(r->has_compensation_id);
    }
}

static void check_end(const struct node *before, const struct saga_steps *after,
                      const struct saga *saga,
                      const struct saga_steps_turn *turn)
{
    if (turn->end == SAGA_STEPS_GOES_ON)
        return;
    assert_false(before->ended);
    assert_null(saga_steps_awaited(after));
    if (turn->end == SAGA_STEPS_COMPLETED)
        assert_int_equal(after->nrows, saga->count);
    for (size_t i = 0; i < after->nrows; i++) {
        if (turn->end == SAGA_STEPS_COMPLETED)
            assert_int_equal(after->rows[i].state, SAGA_STEP_SUCCEEDED);
        else
            assert_false(to_undo(saga, &after->rows[i]));
    }
}

static void check_nothing(const struct node *before,
                          const struct saga_steps *after,
                          const struct saga_steps_turn *turn)
{
    assert_int_equal(turn->nsends + turn->nalerts, 0);
    assert_false(turn->deadline_changed);
    assert_int_equal(turn->end, SAGA_STEPS_GOES_ON);
    assert_int_equal(after->nrows, before->nrows);
    for (size_t i = 0; i < after->nrows; i++) {
        struct saga_step_row row = before->rows[i];

        row.made = row.changed = false;
        assert_memory_equal(&row, &after->rows[i], sizeof(row));
    }
}

/* The newest round of the step before the event. */
static const struct saga_step_row *newest_of(const struct node *node,
                                             size_t step)
{
    const struct saga_step_row *row = NULL;

    for (size_t i = 0; i < node->nrows; i++)
        if (node->rows[i].step == step)
            row = &node->rows[i];
    return row;
}

/* A success that was not awaited any more makes a round, which is undone. */
static bool check_late(const struct node *before,
                       const struct saga_steps *after, const struct saga *saga,
                       struct event event, const struct saga_steps_turn *turn)
{
    const struct saga_step_row *was = newest_of(before, event.step);
    const struct saga_step_row *row;
    bool late = event.play == PLAY_YES && was != NULL && back(was) &&
                (was->answered_at == 0 || was->state == SAGA_STEP_FAILED);

    if (!late)
        return false;
    assert_true(turn->taken);
    assert_int_equal(after->nrows, before->nrows + 1);
    row = &after->rows[after->nrows - 1];
    assert_int_equal(row->step, event.step);
    assert_int_equal(row->round, was->round + 1);
    assert_true(row->state == SAGA_STEP_SUCCEEDED ||
                row->state == SAGA_STEP_COMPENSATING);
    if (saga->rules[event.step].pivot) {
        assert_int_equal(turn->nalerts, 1);
        assert_int_equal(turn->alerts[0].alarm, SAGA_STEPS_BEYOND);
    }
    return true;
}

/* The same once more changes nothing. A confirmation that does not say of which
 * round it is may be taken for that of the next one. */
static void check_duplicate(struct search *search, const struct node *after,
                            struct event event)
{
    struct saga_steps steps = load(search, after);
    const struct saga_step_row *row = saga_steps_awaited(&steps);
    struct saga_steps_turn turn;

    if (event.play == PLAY_SILENCE || event.play == PLAY_RETRY)
        return;
    if ((event.play == PLAY_UNDONE || event.play == PLAY_CONFIRM) &&
        row != NULL && row->step == event.step)
        return;
    play(&steps, event, &turn);
    assert_false(turn.taken);
    check_nothing(after, &steps, &turn);
}

static void check_silence(const struct node *before,
                          const struct saga_steps *after,
                          const struct saga *saga,
                          const struct saga_steps_turn *turn)
{
    const struct saga_step_row *row = NULL;

    for (size_t i = 0; i < before->nrows; i++)
        if (awaited(&before->rows[i]))
            row = &before->rows[i];
    if (row == NULL)
        return;
    assert_true(turn->taken);
    if (back(row) || saga->rules[row->step].pivot ||
        saga->rules[row->step].retriable) {
        assert_int_equal(turn->nsends, 1);
        assert_true(turn->sends[0].again);
        assert_int_equal(turn->sends[0].compensation, back(row));
    } else if (saga->rules[row->step].compensated) {
        assert_int_equal(turn->nsends, 1);
        assert_true(turn->sends[0].compensation);
        assert_int_equal(after->rows[turn->sends[0].row].step, row->step);
    }
}

/* --- the search ----------------------------------------------------------- */

static void keep(struct search *search, const struct node *node)
{
    char key[ROWS_MAX * 16 + 8];
    size_t len = 0;
    bool added;

    for (size_t i = 0; i < node->nrows; i++) {
        const struct saga_step_row *r = &node->rows[i];
        int sends = r->sends + r->compensation_sends;

        len += (size_t)snprintf(key + len, sizeof(key) - len, "%zu%d%d%d%d%d ",
                                r->step, r->round, (int)r->state,
                                r->answered_at != 0, r->reason.data != NULL,
                                sends < 4 ? sends : 4);
    }
    len += (size_t)snprintf(key + len, sizeof(key) - len, "%d%d", node->ended,
                            node->completed);
    map_put(&search->seen, arena_copy(&search->keys, (struct text){key, len}),
            0, &added);
    if (!added)
        return;
    if (search->count == search->capacity) {
        search->capacity = search->capacity * 2 + 64;
        search->nodes = realloc(search->nodes,
                                search->capacity * sizeof(*search->nodes));
        assert_non_null(search->nodes);
    }
    search->nodes[search->count] = *node;
    for (size_t i = 0; i < node->nrows; i++)
        if (node->rows[i].reason.data != NULL)
            search->nodes[search->count].rows[i].reason = TEXT_LITERAL("why");
    search->count++;
}

static void expand(struct search *search, size_t at, struct event event)
{
    const struct node before = search->nodes[at];
    const struct saga *saga = search->saga;
    struct saga_steps steps = load(search, &before);
    struct saga_steps_turn turn;
    struct node after;

    play(&steps, event, &turn);
    search->played++;
    search->late += check_late(&before, &steps, saga, event, &turn);
    if (!turn.taken) {
        assert_false(event.play == PLAY_START && before.nrows == 0);
        check_nothing(&before, &steps, &turn);
        return;
    }
    assert_false(before.completed);
    steps.ended |= turn.end != SAGA_STEPS_GOES_ON;
    check_awaited(&steps);
    check_deadline(&before, &steps, &turn);
    check_pivotal(&steps, saga);
    for (size_t i = 0; i < turn.nsends; i++)
        check_send(&before, &steps, saga, &turn.sends[i]);
    check_end(&before, &steps, saga, &turn);
    if (event.play == PLAY_SILENCE)
        check_silence(&before, &steps, saga, &turn);
    assert_true(steps.nrows <= ROWS_MAX);
    after = (struct node){
        .nrows = steps.nrows,
        .ended = steps.ended,
        .completed = before.completed || turn.end == SAGA_STEPS_COMPLETED,
    };
    memcpy(after.rows, steps.rows, steps.nrows * sizeof(*steps.rows));
    search->cancelled += turn.end == SAGA_STEPS_CANCELLED;
    search->completed += turn.end == SAGA_STEPS_COMPLETED;
    check_duplicate(search, &after, event);
    keep(search, &after);
}

/* Only a compensation that was sent is answered with its id. */
static bool can_happen(const struct node *node, struct event event)
{
    if (event.play != PLAY_UNDONE_TOLD)
        return event.round == 1;
    for (size_t i = 0; i < node->nrows; i++)
        if (node->rows[i].step == event.step &&
            node->rows[i].round == event.round &&
            node->rows[i].has_compensation_id)
            return true;
    return false;
}

static void play_all(const unsigned *kinds, size_t count)
{
    const struct saga saga = saga_of(kinds, count);
    struct search search = {.saga = &saga};
    struct node first = {.nrows = 0};

    keep(&search, &first);
    for (size_t at = 0; at < search.count; at++)
        for (int p = 0; p < PLAYS; p++)
            for (size_t step = 0; step < count; step++)
                for (int round = 1; round <= 3; round++) {
                    struct event event = {(enum play)p, step, round};

                    if (can_happen(&search.nodes[at], event))
                        expand(&search, at, event);
                    arena_reset(&search.arena);
                }
    print_message("%zu steps: %zu states, %zu events played, %zu ends\n", count,
                  search.count, search.played,
                  search.cancelled + search.completed);
    assert_true(search.completed > 0);
    free(search.nodes);
    map_free(&search.seen);
    arena_free(&search.arena);
    arena_free(&search.keys);
}

static void every_order_of_events_keeps_the_rules(void **state)
{
    static const unsigned one[] = {PLAIN};
    static const unsigned plain[] = {PLAIN, PLAIN, PLAIN};
    static const unsigned pivot[] = {PLAIN, PLAIN, PIVOT, RETRIABLE};
    static const unsigned first[] = {PIVOT, RETRIABLE, RETRIABLE};
    static const unsigned mixed[] = {PLAIN, UNNEEDED, PLAIN | STAGED, PIVOT,
                                     RETRIABLE | STAGED};
    static const unsigned last[] = {PLAIN, PLAIN, PIVOT};
    static const unsigned staged[] = {PLAIN, PIVOT | STAGED,
                                      RETRIABLE | STAGED};
    static const unsigned all_staged[] = {PLAIN | STAGED, PLAIN | STAGED};

    (void)state;
    play_all(one, 1);
    play_all(plain, 3);
    play_all(pivot, 4);
    play_all(first, 3);
    play_all(mixed, 5);
    play_all(last, 3);
    play_all(staged, 3);
    play_all(all_staged, 2);
}

/* --- the rest ------------------------------------------------------------- */

static void resends_slow_down_and_raise_one_alarm(void **state)
{
    static const unsigned kinds[] = {PLAIN, PLAIN};
    static const int64_t waits[] = {30, 40, 80, 100, 100, 100};
    const struct saga saga = saga_of(kinds, 2);
    struct arena arena = ARENA_EMPTY;
    struct saga_steps steps = steps_of(&saga, &arena);
    struct saga_steps_turn turn;
    struct saga_steps_reply reply = {.type = YES[0]};

    (void)state;
    saga_steps_start(&steps, &turn);
    assert_int_equal(turn.deadline_at - steps.now, 60 * SECOND);
    saga_steps_reply(&steps, &reply, &turn);
    reply.type = NO[1];
    saga_steps_reply(&steps, &reply, &turn);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_int_equal(turn.deadline_at - steps.now, waits[i] * SECOND);
        assert_int_equal(turn.nalerts, i == 2 ? 1 : 0);
        if (turn.nalerts > 0)
            assert_int_equal(turn.alerts[0].alarm, SAGA_STEPS_STUCK);
        assert_string_equal(saga_step_state_word(steps.rows[0].state),
                            i >= 2 ? "STUCK" : "COMPENSATING");
        steps.now = turn.deadline_at;
        saga_steps_overdue(&steps, &turn);
    }
    saga_steps_confirm(&steps, TEXT_LITERAL("b"), &turn);
    assert_false(turn.taken);
    saga_steps_confirm(&steps, TEXT_LITERAL("a"), &turn);
    assert_int_equal(turn.end, SAGA_STEPS_CANCELLED);
    arena_free(&arena);
}

static void a_silent_pivot_is_sent_for_ever(void **state)
{
    static const unsigned kinds[] = {PLAIN | STAGED, PIVOT};
    const struct saga saga = saga_of(kinds, 2);
    struct arena arena = ARENA_EMPTY;
    struct saga_steps steps = steps_of(&saga, &arena);
    struct saga_steps_turn turn;
    struct saga_steps_reply reply = {.type = YES[1]};
    struct uuid id;
    size_t alarms[4] = {0};

    (void)state;
    saga_steps_start(&steps, &turn);
    id = steps.rows[1].command_id;
    for (int i = 0; i < 50; i++) {
        steps.now = turn.deadline_at;
        saga_steps_overdue(&steps, &turn);
        assert_int_equal(turn.nsends, 1);
        assert_true(turn.sends[0].again && !turn.sends[0].compensation);
        assert_true(uuid_equal(&id, &steps.rows[1].command_id));
        for (size_t a = 0; a < turn.nalerts; a++)
            alarms[turn.alerts[a].alarm]++;
    }
    assert_int_equal(alarms[SAGA_STEPS_SILENT], 1);
    assert_int_equal(alarms[SAGA_STEPS_STUCK], 1);
    assert_int_equal(steps.rows[1].sends, 51);
    saga_steps_reply(&steps, &reply, &turn);
    assert_int_equal(turn.end, SAGA_STEPS_COMPLETED);
    arena_free(&arena);
}

/* A reply that names a command of somebody else is none. */
static void a_reply_to_another_instance_is_not_taken(void **state)
{
    static const unsigned kinds[] = {PLAIN};
    const struct saga saga = saga_of(kinds, 1);
    struct arena arena = ARENA_EMPTY;
    struct saga_steps steps = steps_of(&saga, &arena);
    struct saga_steps_turn turn;
    struct uuid other = {{7}};
    struct saga_steps_reply reply = {.type = YES[0], .command_id = &other};

    (void)state;
    saga_steps_start(&steps, &turn);
    saga_steps_reply(&steps, &reply, &turn);
    assert_false(turn.taken);
    reply.command_id = &steps.rows[0].command_id;
    reply.cause = &other;
    saga_steps_reply(&steps, &reply, &turn);
    assert_int_equal(turn.end, SAGA_STEPS_COMPLETED);
    arena_free(&arena);
}

static void the_words_of_states_come_back(void **state)
{
    enum saga_step_state parsed;

    (void)state;
    for (int i = 0; i < SAGA_STEP_STATES; i++) {
        const char *word = saga_step_state_word((enum saga_step_state)i);

        assert_true(saga_step_state_parse(text_of(word), &parsed));
        assert_int_equal(parsed, i);
    }
    assert_false(saga_step_state_parse(TEXT_LITERAL("GONE"), &parsed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_events_keeps_the_rules),
        cmocka_unit_test(resends_slow_down_and_raise_one_alarm),
        cmocka_unit_test(a_silent_pivot_is_sent_for_ever),
        cmocka_unit_test(a_reply_to_another_instance_is_not_taken),
        cmocka_unit_test(the_words_of_states_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
