/*
 * Policy -- what becomes of a message that could not be applied: tried again
 * after a while, or, its budget spent, what the consumer's error policy says
 * (design 3, "Failures").
 */
#ifndef HOST_CONSUMER_POLICY_H
#define HOST_CONSUMER_POLICY_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/** How often and when a failed message is tried again. */
struct retry_policy {
    int attempts;         /* in all, the first one included; at least 1 */
    int64_t delay_us;     /* before the second attempt */
    double factor;        /* each delay is that many times the one before */
    int64_t max_delay_us; /* no delay is longer */
    double jitter;        /* 0 to 1: a delay varies by so much, up and down */
};

/** What a spent budget leads to. */
enum error_policy {
    ON_ERROR_HALT,            /* the consumer stands still */
    ON_ERROR_DEAD_LETTER_KEY, /* the key's later messages lie dead behind it */
    ON_ERROR_DEAD_LETTER,     /* that message alone lies dead */
    ON_ERROR_SKIP,            /* passed over for good */
};

struct failure_policy {
    struct retry_policy retry;
    enum error_policy on_error;
    bool decides; /* the applier's on_error says it instead */
};

#define ON_ERROR_WORDS                                                         \
    "\"halt\", \"dead_letter_key\", \"dead_letter\" or \"skip\""

/** "halt", "dead_letter_key", "dead_letter", "skip". */
const char *error_policy_word(enum error_policy policy);
/** False when it is none of the words. */
bool error_policy_parse(struct text word, enum error_policy *policy);

/** Whether a message that has failed `failures` times is tried again. */
bool retry_policy_allows(const struct retry_policy *policy, int failures);

/** Microseconds until the next attempt after `failures` (from 1) failures.
 * `random` is any number: it picks the place within the jitter. */
int64_t retry_policy_delay(const struct retry_policy *policy, int failures,
                           uint64_t random);

#endif
