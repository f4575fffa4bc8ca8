/*
 * Pace -- how long to wait between two looks for something new. The waits
 * double, up to the longest that the settings allow.
 *
 * After what was found or told they begin anew, and are short whatever the
 * settings say: what was told may be there a moment later only, and it is not
 * told a second time. What is known to be there, and is kept back by somebody
 * who may end without a word, is never waited for for long.
 */
#ifndef HOST_RUN_PACE_H
#define HOST_RUN_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    int64_t first_us;
    int64_t longest_us;
    int64_t next_us;
};

/** As after something that was found. */
struct pace pace_make(int64_t first_us, int64_t longest_us);

/** Something was found or told: the waits begin anew. */
void pace_begin(struct pace *pace);

/** How long to wait from a look that found nothing, or all that it could.
 * `held`: it has seen that there is more, and could not have it. */
int64_t pace_next(struct pace *pace, bool held);

#endif
