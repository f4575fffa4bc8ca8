#include "model/saga_steps.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const words[SAGA_STEP_STATES] = {
    [SAGA_STEP_SENT] = "SENT",
    [SAGA_STEP_OVERDUE] = "OVERDUE",
    [SAGA_STEP_SUCCEEDED] = "SUCCEEDED",
    [SAGA_STEP_FAILED] = "FAILED",
    [SAGA_STEP_TIMED_OUT] = "TIMED_OUT",
    [SAGA_STEP_COMPENSATING] = "COMPENSATING",
    [SAGA_STEP_STUCK] = "STUCK",
    [SAGA_STEP_COMPENSATED] = "COMPENSATED",
};

const char *saga_step_state_word(enum saga_step_state state)
{
    return words[state];
}

bool saga_step_state_parse(struct text word, enum saga_step_state *state)
{
    for (size_t i = 0; i < SAGA_STEP_STATES; i++)
        if (text_equal(word, text_of(words[i]))) {
            *state = (enum saga_step_state)i;
            return true;
        }
    return false;
}

/* --- rows ----------------------------------------------------------------- */

static bool awaits_reply(const struct saga_step_row *row)
{
    return row->state == SAGA_STEP_SENT || row->state == SAGA_STEP_OVERDUE;
}

static bool awaits_confirmation(const struct saga_step_row *row)
{
    return row->state == SAGA_STEP_COMPENSATING ||
           row->state == SAGA_STEP_STUCK;
}

struct saga_step_row *saga_steps_awaited(const struct saga_steps *steps)
{
    for (size_t i = 0; i < steps->nrows; i++)
        if (awaits_reply(&steps->rows[i]) ||
            awaits_confirmation(&steps->rows[i]))
            return &steps->rows[i];
    return NULL;
}

/* The row of the step's newest round. Rows stand in the order that the steps
 * had when each was made, which another script may have changed. */
static struct saga_step_row *newest(const struct saga_steps *steps, size_t step)
{
    struct saga_step_row *found = NULL;

    for (size_t i = 0; i < steps->nrows; i++)
        if (steps->rows[i].step == step &&
            (found == NULL || steps->rows[i].round > found->round))
            found = &steps->rows[i];
    return found;
}

static const struct saga_step_rule *rule_of(const struct saga_steps *steps,
                                            const struct saga_step_row *row)
{
    assert(row->step < steps->nrules);
    return &steps->rules[row->step];
}

/* The pivot or a later one: silence does not take it back. */
static bool is_pivotal(const struct saga_step_rule *rule)
{
    return rule->pivot || rule->retriable;
}

/* Adds a row at the end. Rows move. */
static struct saga_step_row *add_row(struct saga_steps *steps,
                                     const struct saga_step_row *row)
{
    struct saga_step_row *added;

    steps->rows = arena_grow(steps->arena, steps->rows, steps->nrows,
                             sizeof(*steps->rows));
    added = &steps->rows[steps->nrows++];
    *added = *row;
    added->made = added->changed = true;
    return added;
}

static struct uuid make_id(struct saga_steps *steps, struct text step,
                           const char *kind, int round)
{
    size_t size = step.len + 32;
    char *name = arena_alloc(steps->arena, size);
    int len = snprintf(name, size, TEXT_FORMAT "/%s/%d", TEXT_ARGS(step), kind,
                       round);

    return uuid_v5(&steps->instance, (struct text){name, (size_t)len});
}

/* --- what is to be done --------------------------------------------------- */

static void add_send(struct saga_steps *steps, struct saga_steps_turn *turn,
                     const struct saga_step_row *row, bool again)
{
    turn->sends = arena_grow(steps->arena, turn->sends, turn->nsends,
                             sizeof(*turn->sends));
    turn->sends[turn->nsends++] = (struct saga_steps_send){
        .row = (size_t)(row - steps->rows),
        .compensation = awaits_confirmation(row),
        .again = again,
    };
}

static void add_alert(struct saga_steps *steps, struct saga_steps_turn *turn,
                      const struct saga_step_row *row,
                      enum saga_steps_alarm alarm)
{
    turn->alerts = arena_grow(steps->arena, turn->alerts, turn->nalerts,
                              sizeof(*turn->alerts));
    turn->alerts[turn->nalerts++] = (struct saga_steps_alert){
        .row = (size_t)(row - steps->rows),
        .alarm = alarm,
    };
}

/* Resends wait at least as long as an answer may take, and longer once the
 * policy's delays are longer. `resends` were made before. */
static void await(struct saga_steps *steps, struct saga_steps_turn *turn,
                  struct saga_step_row *row,
                  const struct saga_step_message *message, int resends)
{
    uint64_t random;
    int64_t wait = message->timeout_us;
    int64_t delay;

    if (resends > 0) {
        memcpy(&random, row->command_id.bytes, sizeof(random));
        delay = retry_policy_delay(&steps->retry, resends,
                                   random * (uint64_t)(2 * resends + 1));
        wait = delay > wait ? delay : wait;
    }
    row->deadline_at = steps->now + wait;
    turn->deadline_changed = true;
    turn->wait_us = wait;
    turn->deadline_at = row->deadline_at;
}

/* The row's answer is here, or is not waited for any more. */
static void settle(struct saga_steps_turn *turn, struct saga_step_row *row,
                   enum saga_step_state state)
{
    row->state = state;
    row->deadline_at = 0;
    row->message = TEXT_NONE;
    row->changed = true;
    turn->taken = turn->deadline_changed = true;
    turn->deadline_at = 0;
}

/* Sends a step's first command. True when its answer is awaited. */
static bool begin_step(struct saga_steps *steps, struct saga_steps_turn *turn,
                       size_t step)
{
    const struct saga_step_rule *rule = &steps->rules[step];
    struct saga_step_row made = {
        .name = rule->name,
        .step = step,
        .round = 1,
        .state = SAGA_STEP_SENT,
        .command_id = make_id(steps, rule->name, "command", 1),
        .sends = 1,
        .sent_at = steps->now,
    };
    struct saga_step_row *row = add_row(steps, &made);

    add_send(steps, turn, row, false);
    if (rule->forward.nsucceeds > 0) {
        await(steps, turn, row, &rule->forward, 0);
        return true;
    }
    row->state = SAGA_STEP_SUCCEEDED;
    row->answered_at = steps->now;
    return false;
}

/* Sends the commands from a step on, up to one whose answer is awaited. One
 * that was sent before, where another order was declared, is done. */
static void go_on(struct saga_steps *steps, struct saga_steps_turn *turn,
                  size_t step)
{
    turn->taken = true;
    for (; step < steps->nrules; step++)
        if (newest(steps, step) == NULL && begin_step(steps, turn, step))
            return;
    turn->end = SAGA_STEPS_COMPLETED;
}

static bool is_to_be_undone(const struct saga_steps *steps,
                            const struct saga_step_row *row)
{
    return (row->state == SAGA_STEP_SUCCEEDED ||
            row->state == SAGA_STEP_TIMED_OUT) &&
           row->step != SAGA_STEP_GONE && rule_of(steps, row)->compensated;
}

/* Sends the next compensation, newest step first, unless one is under way; ends
 * the saga when none is left. */
static void go_back(struct saga_steps *steps, struct saga_steps_turn *turn)
{
    struct saga_step_row *row = NULL;

    if (saga_steps_awaited(steps) != NULL)
        return;
    for (size_t i = 0; i < steps->nrows; i++)
        if (is_to_be_undone(steps, &steps->rows[i]) &&
            (row == NULL || steps->rows[i].step > row->step))
            row = &steps->rows[i];
    if (row == NULL) {
        turn->end = steps->ended ? SAGA_STEPS_GOES_ON : SAGA_STEPS_CANCELLED;
        return;
    }
    row->state = SAGA_STEP_COMPENSATING;
    row->compensation_id = make_id(steps, row->name, "compensation",
                                   row->round);
    row->has_compensation_id = row->changed = true;
    row->compensation_sends = 1;
    row->compensation_sent_at = steps->now;
    await(steps, turn, row, &rule_of(steps, row)->back, 0);
    add_send(steps, turn, row, false);
}

/* --- answers -------------------------------------------------------------- */

/* A success that nobody awaits any more: a round of its own, under which the
 * receiver has answered no compensation yet. */
static void succeed_late(struct saga_steps *steps, struct saga_steps_turn *turn,
                         const struct saga_step_row *before)
{
    struct saga_step_row made = {
        .name = before->name,
        .step = before->step,
        .round = before->round + 1,
        .state = SAGA_STEP_SUCCEEDED,
        .command_id = before->command_id,
        .sent_at = before->sent_at,
        .answered_at = steps->now,
    };
    const struct saga_step_row *row = add_row(steps, &made);

    turn->taken = true;
    if (is_pivotal(rule_of(steps, row)))
        add_alert(steps, turn, row, SAGA_STEPS_BEYOND);
    go_back(steps, turn);
}

static void succeed(struct saga_steps *steps, struct saga_steps_turn *turn,
                    struct saga_step_row *row)
{
    size_t step = row->step;

    if (awaits_reply(row)) {
        settle(turn, row, SAGA_STEP_SUCCEEDED);
        row->answered_at = steps->now;
        row->reason = TEXT_NONE;
        go_on(steps, turn, step + 1);
    } else if (row->state == SAGA_STEP_FAILED || row->answered_at == 0) {
        succeed_late(steps, turn, row);
    }
}

static void decline(struct saga_steps *steps, struct saga_steps_turn *turn,
                    struct saga_step_row *row, struct text type)
{
    if (!awaits_reply(row))
        return;
    if (!rule_of(steps, row)->retriable) {
        settle(turn, row, SAGA_STEP_FAILED);
        row->answered_at = steps->now;
        row->reason = arena_copy(steps->arena, type);
        go_back(steps, turn);
    } else if (row->reason.data == NULL) {
        row->state = SAGA_STEP_OVERDUE;
        row->reason = arena_copy(steps->arena, type);
        row->changed = turn->taken = true;
        add_alert(steps, turn, row, SAGA_STEPS_DECLINED);
    }
}

static void undone(struct saga_steps *steps, struct saga_steps_turn *turn,
                   struct saga_step_row *row)
{
    if (!awaits_confirmation(row))
        return;
    settle(turn, row, SAGA_STEP_COMPENSATED);
    row->compensated_at = steps->now;
    go_back(steps, turn);
}

static bool has(const struct text *types, size_t count, struct text type)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(types[i], type))
            return true;
    return false;
}

enum answer { ANSWER_NONE, ANSWER_SUCCESS, ANSWER_REFUSAL, ANSWER_UNDONE };

static enum answer answer_of(const struct saga_step_rule *rule,
                             struct text type)
{
    if (has(rule->forward.succeeds, rule->forward.nsucceeds, type))
        return ANSWER_SUCCESS;
    if (has(rule->fails, rule->nfails, type))
        return ANSWER_REFUSAL;
    if (rule->compensated &&
        has(rule->back.succeeds, rule->back.nsucceeds, type))
        return ANSWER_UNDONE;
    return ANSWER_NONE;
}

size_t saga_steps_of_type(const struct saga_step_rule *rules, size_t nrules,
                          struct text type)
{
    for (size_t i = 0; i < nrules; i++)
        if (answer_of(&rules[i], type) != ANSWER_NONE)
            return i;
    return SAGA_STEP_GONE;
}

/* The row whose compensation awaits its confirmation, or the newest. */
static struct saga_step_row *undone_row(const struct saga_steps *steps,
                                        size_t step)
{
    struct saga_step_row *awaited = saga_steps_awaited(steps);

    return awaited != NULL && awaited->step == step ? awaited
                                                    : newest(steps, step);
}

/* Whether any row of the instance has sent under that id; `row` becomes the one
 * that has sent its compensation. */
static bool knows(const struct saga_steps *steps, const struct uuid *id,
                  struct saga_step_row **row)
{
    bool known = false;

    *row = NULL;
    for (size_t i = 0; i < steps->nrows; i++) {
        struct saga_step_row *r = &steps->rows[i];

        known |= uuid_equal(&r->command_id, id);
        if (r->has_compensation_id && uuid_equal(&r->compensation_id, id)) {
            known = true;
            *row = r;
        }
    }
    return known;
}

void saga_steps_reply(struct saga_steps *steps,
                      const struct saga_steps_reply *reply,
                      struct saga_steps_turn *turn)
{
    size_t step = saga_steps_of_type(steps->rules, steps->nrules, reply->type);
    struct saga_step_row *row, *told = NULL;
    enum answer answer;

    *turn = (struct saga_steps_turn){.taken = false};
    if (step == SAGA_STEP_GONE)
        return;
    if (reply->command_id != NULL && !knows(steps, reply->command_id, &told))
        return; /* of another instance */
    if (told == NULL && reply->cause != NULL)
        (void)knows(steps, reply->cause, &told);
    answer = answer_of(&steps->rules[step], reply->type);
    row = answer != ANSWER_UNDONE              ? newest(steps, step)
          : told != NULL && told->step == step ? told
                                               : undone_row(steps, step);
    if (row == NULL)
        return;
    if (answer == ANSWER_SUCCESS)
        succeed(steps, turn, row);
    else if (answer == ANSWER_REFUSAL)
        decline(steps, turn, row, reply->type);
    else
        undone(steps, turn, row);
}

/* --- start, silence, operators -------------------------------------------- */

void saga_steps_start(struct saga_steps *steps, struct saga_steps_turn *turn)
{
    *turn = (struct saga_steps_turn){.taken = false};
    if (steps->nrows == 0 && !steps->ended)
        go_on(steps, turn, 0);
}

static void send_again(struct saga_steps *steps, struct saga_steps_turn *turn,
                       struct saga_step_row *row)
{
    const struct saga_step_rule *rule = rule_of(steps, row);
    bool back = awaits_confirmation(row);
    int *sends = back ? &row->compensation_sends : &row->sends;
    int resends = *sends;

    *sends += 1;
    if (!back)
        row->reason = TEXT_NONE;
    row->changed = turn->taken = true;
    await(steps, turn, row, back ? &rule->back : &rule->forward, resends);
    add_send(steps, turn, row, true);
}

static void give_up_waiting(struct saga_steps *steps,
                            struct saga_steps_turn *turn,
                            struct saga_step_row *row)
{
    int64_t timeout = rule_of(steps, row)->forward.timeout_us;
    char text[64];

    if (timeout % (60 * CLOCK_SECOND) == 0)
        snprintf(text, sizeof(text), "no answer within %" PRId64 " min",
                 timeout / (60 * CLOCK_SECOND));
    else if (timeout % CLOCK_SECOND == 0)
        snprintf(text, sizeof(text), "no answer within %" PRId64 " s",
                 timeout / CLOCK_SECOND);
    else
        snprintf(text, sizeof(text), "no answer within %" PRId64 " ms",
                 timeout / 1000);
    settle(turn, row, SAGA_STEP_TIMED_OUT);
    row->reason = arena_copy(steps->arena, text_of(text));
    go_back(steps, turn);
}

void saga_steps_overdue(struct saga_steps *steps, struct saga_steps_turn *turn)
{
    struct saga_step_row *row = saga_steps_awaited(steps);
    bool back;

    *turn = (struct saga_steps_turn){.taken = false};
    if (row == NULL)
        return;
    back = awaits_confirmation(row);
    if (!back && !is_pivotal(rule_of(steps, row))) {
        give_up_waiting(steps, turn, row);
        return;
    }
    send_again(steps, turn, row);
    if (back && row->compensation_sends > steps->retry.attempts) {
        if (row->state != SAGA_STEP_STUCK)
            add_alert(steps, turn, row, SAGA_STEPS_STUCK);
        row->state = SAGA_STEP_STUCK;
    } else if (!back) {
        if (row->state != SAGA_STEP_OVERDUE)
            add_alert(steps, turn, row, SAGA_STEPS_SILENT);
        else if (row->sends == steps->retry.attempts + 1)
            add_alert(steps, turn, row, SAGA_STEPS_STUCK);
        row->state = SAGA_STEP_OVERDUE;
    }
}

void saga_steps_retry(struct saga_steps *steps, struct saga_steps_turn *turn)
{
    struct saga_step_row *row = saga_steps_awaited(steps);

    *turn = (struct saga_steps_turn){.taken = false};
    if (row != NULL)
        send_again(steps, turn, row);
}

void saga_steps_confirm(struct saga_steps *steps, struct text name,
                        struct saga_steps_turn *turn)
{
    struct saga_step_row *row = saga_steps_awaited(steps);

    *turn = (struct saga_steps_turn){.taken = false};
    if (row == NULL || !text_equal(row->name, name))
        return;
    if (awaits_reply(row))
        succeed(steps, turn, row);
    else
        undone(steps, turn, row);
}

const struct saga_step_message *
saga_steps_message(const struct saga_steps *steps,
                   const struct saga_steps_send *send)
{
    const struct saga_step_rule *rule = rule_of(steps, &steps->rows[send->row]);

    return send->compensation ? &rule->back : &rule->forward;
}
