/*
 * Wake -- what a host waits on when there is nothing to do: that the database
 * tells of something new (db/listener.h), or that the time is over, which is
 * how it finds out where nothing tells, or where it was not heard. A lost
 * connection is made again in between, and told in the log once.
 *
 * What was committed before a wait begins and not taken yet ends it at once:
 * nothing is lost between a look and the wait after it.
 */
#ifndef HOST_RUN_WAKE_H
#define HOST_RUN_WAKE_H

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "run/settings.h"

struct wake; /* run/wake.c */

/** `channel` is notify_channel's (topic/notify.h), copied; settings and log are
 * borrowed. Where nothing tells, or `notify` is off, it waits for the time
 * only. */
struct wake *wake_open(const struct settings *settings, struct text channel,
                       const struct log *log);
void wake_close(struct wake *wake); /* NULL is allowed */

/**
 * Waits for `us` microseconds at most, until the database tells of something,
 * `other_fd` (-1: none) can be read, or a signal comes. True when there is
 * something to look at in the database: the caller looks, and does so again
 * soon (run/pace.h), for it may be there a moment later only.
 */
bool wake_wait(struct wake *wake, int other_fd, int64_t us);

#endif
