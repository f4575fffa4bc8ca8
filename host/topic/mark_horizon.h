/*
 * Mark horizon -- the high-water mark where positions come from a sequence.
 *
 * A position is handed out before its transaction commits, and transactions
 * end in any order. The detector therefore reads the last position handed out
 * (the pending end) and then, in this order, takes a transaction id (the
 * pending horizon). Every writer owns its id before it draws a position, so a
 * position up to the end belongs to a transaction with a lower id: once none
 * of those is in flight, the end is the mark. When one is, and it never drew a
 * position, it need not be waited for: drawing locks the sequence until the
 * transaction has ended, so the locks tell who matters.
 *
 * Only topic/high_water_mark.c calls this.
 */
#ifndef HOST_TOPIC_MARK_HORIZON_H
#define HOST_TOPIC_MARK_HORIZON_H

#include "topic/high_water_mark.h"

enum status mark_horizon_advance(struct db *db, const struct catalog *catalog,
                                 const char *topic,
                                 struct mark_detector *detector,
                                 struct high_water_mark *mark,
                                 struct diag *diag) MUST_CHECK;

/** Whether any transaction that has drawn a position is open. */
enum status mark_horizon_held(struct db *db, const struct catalog *catalog,
                              const char *topic, bool *held,
                              struct diag *diag) MUST_CHECK;

/** Appends who keeps the mark below the end, or nothing. */
enum status mark_horizon_blocker(struct db *db, const struct catalog *catalog,
                                 const char *topic, struct buffer *out,
                                 struct diag *diag) MUST_CHECK;

#endif
