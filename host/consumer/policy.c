#include "consumer/policy.h"

/* A worker that was ended may have left any number of failures, and whoever
 * counts them for it must not compute for long. */
#define GROWS_FOR 1000000

static const char *const words[] = {
    [ON_ERROR_HALT] = "halt",
    [ON_ERROR_DEAD_LETTER_KEY] = "dead_letter_key",
    [ON_ERROR_DEAD_LETTER] = "dead_letter",
    [ON_ERROR_SKIP] = "skip",
};

const char *error_policy_word(enum error_policy policy)
{
    return words[policy];
}

bool error_policy_parse(struct text word, enum error_policy *policy)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (text_equal(word, text_of(words[i]))) {
            *policy = (enum error_policy)i;
            return true;
        }
    return false;
}

bool retry_policy_allows(const struct retry_policy *policy, int failures)
{
    return failures < policy->attempts;
}

int64_t retry_policy_delay(const struct retry_policy *policy, int failures,
                           uint64_t random)
{
    double longest = (double)policy->max_delay_us;
    double delay = (double)policy->delay_us;
    double place = (double)(random >> 11) / (double)(UINT64_C(1) << 53);

    if (failures > GROWS_FOR)
        failures = GROWS_FOR;
    for (int i = 1; i < failures && delay > 0 && delay < longest; i++)
        delay *= policy->factor;
    if (delay > longest)
        delay = longest;
    delay *= 1 + policy->jitter * (2 * place - 1);
    return delay >= longest ? policy->max_delay_us : (int64_t)delay;
}
