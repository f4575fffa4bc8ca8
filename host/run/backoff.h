/*
 * Backoff -- the waiting times between tries: doubled up to a cap, each
 * shortened at random by up to a half so that many do not try at once.
 */
#ifndef HOST_RUN_BACKOFF_H
#define HOST_RUN_BACKOFF_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct backoff {
    int64_t first_us;
    int64_t cap_us;
    int64_t next_us; /* before it is shortened */
    uint64_t random;
};

struct backoff backoff_make(int64_t first_us, int64_t cap_us);
/** The next wait, in microseconds; at least half of what was doubled. */
int64_t backoff_next(struct backoff *backoff);
void backoff_reset(struct backoff *backoff);

/** Whether waiting helps: what ended like this may end well later. */
bool backoff_helps(enum status status);

#endif
