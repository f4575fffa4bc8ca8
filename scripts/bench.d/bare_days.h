/*
 * Bare, days -- one page of the daily turnover, folded.
 */
#ifndef BENCH_BARE_DAYS_H
#define BENCH_BARE_DAYS_H

#include "bare.h"

struct day {
    char text[11];
    int64_t cents;
    int64_t movements;
};

/* Days of one page: few, and neighbours are mostly equal. */
struct days {
    struct day list[BARE_BATCH];
    int count;
};

static inline void days_add(struct days *days, const char *occurred_at,
                            int64_t cents)
{
    struct day *day;

    for (int i = days->count - 1; i >= 0; i--) {
        day = &days->list[i];
        if (memcmp(day->text, occurred_at, 10) == 0) {
            day->cents += cents;
            day->movements++;
            return;
        }
    }
    day = &days->list[days->count++];
    memcpy(day->text, occurred_at, 10);
    day->text[10] = '\0';
    day->cents = cents;
    day->movements = 1;
}

#endif
