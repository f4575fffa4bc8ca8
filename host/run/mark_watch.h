/*
 * Mark watch -- what whoever moves a high-water mark keeps from look to look,
 * and tells the log: who or what keeps the mark back.
 */
#ifndef HOST_RUN_MARK_WATCH_H
#define HOST_RUN_MARK_WATCH_H

#include "base/log.h"
#include "run/application.h"
#include "topic/high_water_mark.h"

/** Starts as all zero, but for the topic and what the detector takes. */
struct mark_watch {
    const char *topic;
    struct high_water_mark mark; /* as found last */
    struct mark_detector detector;
    int64_t blocked_since; /* monotonic: since when the mark is held back */
    int64_t blocked_told;  /* ... and when the log named who holds it */
};

/** Moves the mark as far as it can be, and tells who keeps it back when that
 * has lasted for a moment, and again now and then. */
enum status mark_watch_look(struct mark_watch *watch, struct application *app,
                            struct diag *diag) MUST_CHECK;

#endif
