#include "run/backoff.h"

#include "base/clock.h"

#include <sys/random.h>
#include <unistd.h>

/* Two that are made at the same moment, in one process or in two, are not to
 * wait alike. A system without random numbers yet only makes that less sure. */
static uint64_t seed(void)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) ==
        (ssize_t)sizeof(random))
        return random;
    return (uint64_t)clock_monotonic() ^ (uint64_t)getpid() << 32;
}

struct backoff backoff_make(int64_t first_us, int64_t cap_us)
{
    return (struct backoff){
        .first_us = first_us,
        .cap_us = cap_us < first_us ? first_us : cap_us,
        .next_us = first_us,
        .random = seed(),
    };
}

static uint64_t next_random(struct backoff *backoff)
{
    uint64_t z = backoff->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t backoff_next(struct backoff *backoff)
{
    int64_t full = backoff->next_us;
    int64_t shortened = full - (int64_t)(next_random(backoff) %
                                         (uint64_t)(full / 2 + 1));

    backoff->next_us = full > backoff->cap_us / 2 ? backoff->cap_us : 2 * full;
    return shortened;
}

void backoff_reset(struct backoff *backoff)
{
    backoff->next_us = backoff->first_us;
}

bool backoff_helps(enum status status)
{
    return status == STATUS_CONFLICT || status == STATUS_LOST ||
           status == STATUS_BUSY || status == STATUS_UNAVAILABLE;
}
