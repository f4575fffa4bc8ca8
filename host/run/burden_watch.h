/*
 * Burden watch -- tells the log when another program makes the database's files
 * grow, and again now and then while it does. Whoever moves the high-water
 * marks asks for a look; it never touches a transaction.
 */
#ifndef HOST_RUN_BURDEN_WATCH_H
#define HOST_RUN_BURDEN_WATCH_H

#include "run/application.h"

/** Starts as all zero. Times are monotonic. */
struct burden_watch {
    int64_t looked_at;
    int64_t told_at; /* 0: the log does not know of it */
    bool seen;       /* by the last look */
};

/** May be called as often as one likes. */
void burden_watch_look(struct burden_watch *watch, struct application *app);

#endif
