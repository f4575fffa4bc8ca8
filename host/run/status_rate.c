#include "run/status_rate.h"

#include "consumer/registry.h"
#include "run/status_lag.h"

static const struct status_consumer *
find_before(const struct status_report *before,
            const struct status_consumer *consumer)
{
    for (size_t i = 0; i < before->nconsumers; i++) {
        const struct status_consumer *then = &before->consumers[i];

        if (strcmp(then->name, consumer->name) == 0 &&
            strcmp(then->type, consumer->type) == 0)
            return then;
    }
    return NULL;
}

/* Messages of the consumer that it has passed since then. */
static enum status count_passed(const struct status_reading *reading,
                                const struct status_consumer *then,
                                const struct status_consumer *now,
                                int64_t *passed, struct diag *diag)
{
    struct status_lag lag = {
        .declaration = status_consumer_declaration(reading->request, now),
        .lowest = then->position,
        .upto = now->position,
        .now_us = reading->now_us,
    };
    enum status status = STATUS_OK;

    if (lag.declaration != NULL && lag.upto > lag.lowest)
        status = status_lag_read(reading->app, &lag, diag);
    *passed = lag.messages;
    return status;
}

static void judge_replay(struct status_consumer *now,
                         const struct status_consumer *then, int64_t elapsed)
{
    int64_t moved = now->position - then->position;
    int64_t left = now->replay_through - now->position;

    if (now->replay_through == 0 || moved <= 0)
        return;
    now->left_us = left <= 0 ? 0
                             : (int64_t)((double)elapsed * (double)left /
                                         (double)moved);
}

static void judge_lag(struct status_consumer *now,
                      const struct status_consumer *then,
                      const struct status_report *before)
{
    bool runs = strcmp(now->state, consumer_state_word(CONSUMER_RUNNING)) == 0;

    if (!runs || now->lag <= 0 || then->lag < 0)
        return;
    if (now->lag > then->lag && now->replay_through == 0) {
        now->rising = then->rising + 1;
        now->rising_lag = then->rising > 0 ? then->rising_lag : then->lag;
        now->rising_us = then->rising > 0 ? then->rising_us : before->taken_us;
    }
    if (then->lag > 0 && now->position == then->position)
        now->still = then->still + 1;
}

enum status status_rate_read(struct status_reading *reading,
                             const struct status_report *before,
                             struct diag *diag)
{
    struct status_report *report = reading->report;
    int64_t elapsed = report->taken_us - before->taken_us;
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < report->nconsumers; i++) {
        struct status_consumer *now = &report->consumers[i];
        const struct status_consumer *then = find_before(before, now);
        int64_t passed = 0;

        /* a reset in between began again: there is nothing to compare */
        if (then == NULL || elapsed <= 0 || !now->declared ||
            !then->registered || now->epoch != then->epoch ||
            now->position < then->position)
            continue;
        status = count_passed(reading, then, now, &passed, diag);
        now->rate = (double)passed * (double)CLOCK_SECOND / (double)elapsed;
        judge_replay(now, then, elapsed);
        judge_lag(now, then, before);
    }
    return status;
}

bool status_rate_is_worth_it(const struct status_report *report)
{
    for (size_t i = 0; i < report->nconsumers; i++) {
        const struct status_consumer *consumer = &report->consumers[i];

        if (consumer->replay_through != 0 &&
            strcmp(consumer->state, consumer_state_word(CONSUMER_RUNNING)) == 0)
            return true;
    }
    return false;
}
