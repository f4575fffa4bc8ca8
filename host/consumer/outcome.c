#include "consumer/outcome.h"

#include "base/hash.h"
#include "consumer/apply.h"

/* The same failure of the same message waits as long wherever it is met. */
static uint64_t jitter_of(const struct message *message, int failures)
{
    struct text id = {(const char *)message->id.bytes,
                      sizeof(message->id.bytes)};

    return (hash_fnv1a64(id) + (uint64_t)failures) *
           UINT64_C(0x9E3779B97F4A7C15);
}

int64_t outcome_retry_at(const struct retry_policy *retry,
                         const struct message *message, int failures,
                         int64_t now_us)
{
    int64_t delay = retry_policy_delay(retry, failures,
                                       jitter_of(message, failures));

    return delay < CLOCK_MAX - now_us ? now_us + delay : CLOCK_MAX;
}

static enum error_policy decide(struct consumer *c, const struct unit *unit,
                                int failures, const struct failure *failure)
{
    const struct applier_ops *ops = c->applier.ops;
    enum error_policy policy = ON_ERROR_HALT;
    struct failure refused;

    if (failure->dead_letter)
        return ON_ERROR_DEAD_LETTER;
    if (!c->policy.decides)
        return c->policy.on_error;
    if (ops->on_error(c->applier.self, unit, failures, failure, &policy,
                      &refused) == STATUS_OK)
        return policy;
    apply_log_failure(c, unit->message, LOG_ERROR, &refused,
                      "its on_error does not say what to do, which means halt");
    return ON_ERROR_HALT;
}

struct outcome outcome_of(struct consumer *c, const struct unit *unit,
                          int failures, bool unresolved,
                          const struct failure *failure)
{
    static const enum undelivered_status statuses[] = {
        [ON_ERROR_HALT] = UNDELIVERED_HALTED,
        [ON_ERROR_DEAD_LETTER_KEY] = UNDELIVERED_DEAD_LETTER_KEY,
        [ON_ERROR_DEAD_LETTER] = UNDELIVERED_DEAD_LETTER,
    };
    const struct retry_policy *retry = &c->policy.retry;
    struct outcome outcome = {
        .entry =
            {
                .message = unit->message,
                .key = unit->key,
                .partition = unit->partition,
                /* what was not tried costs no attempt */
                .failure_count = failure->waits ? failures - 1 : failures,
                .failure = apply_keep_failure(c, failure),
                .unresolved = unresolved,
            },
    };

    if (failure->waits ||
        (!failure->permanent && retry_policy_allows(retry, failures))) {
        outcome.entry.status = UNDELIVERED_FAILED;
        outcome.entry.next_retry_at = outcome_retry_at(
            retry, unit->message, failures, consumer_clock(c->env));
    } else {
        enum error_policy policy = decide(c, unit, failures, failure);

        outcome.skip = policy == ON_ERROR_SKIP;
        if (outcome.skip)
            return outcome;
        outcome.entry.status = statuses[policy];
    }
    outcome.hold = undelivered_hold(outcome.entry.status);
    return outcome;
}
