#include "run/pace.h"

#include "base/clock.h"

/* The first wait, where the settings want a longer one. */
#define SOON_US (CLOCK_SECOND / 200)

/* The longest one for what is kept back, where they do. */
#define HELD_US CLOCK_SECOND

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct pace pace_make(int64_t first_us, int64_t longest_us)
{
    struct pace pace = {.first_us = first_us, .longest_us = longest_us};

    pace_begin(&pace);
    return pace;
}

void pace_begin(struct pace *pace)
{
    pace->next_us = least(pace->first_us, SOON_US);
}

int64_t pace_next(struct pace *pace, bool held)
{
    int64_t wait = least(pace->next_us, pace->longest_us);

    if (held)
        wait = least(wait, HELD_US);
    pace->next_us = wait > pace->longest_us / 2 ? pace->longest_us : 2 * wait;
    return wait;
}
