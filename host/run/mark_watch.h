/*
 * Mark watch -- what whoever moves a high-water mark keeps from look to look,
 * and tells the log: who or what keeps the mark back.
 */
#ifndef HOST_RUN_MARK_WATCH_H
#define HOST_RUN_MARK_WATCH_H

#include "base/log.h"
#include "topic/high_water_mark.h"

/** Starts as all zero, but for detector.may_repair. */
struct mark_watch {
    struct mark_detector detector;
    int64_t blocked_since; /* monotonic: since when the mark is held back */
    int64_t blocked_told;  /* ... and when the log named who holds it */
};

/** After each detection: tells who keeps the mark back when it has lasted for
 * a moment, and again now and then. */
void mark_watch_tell(struct mark_watch *watch, const struct log *log);

#endif
