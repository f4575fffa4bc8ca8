/*
 * Status rate -- what moved between two looks: messages a second, the time
 * that a replay still takes, a lag that only grows. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_RATE_H
#define HOST_RUN_STATUS_RATE_H

#include "run/status_consumer.h"

/** So many looks in a row make a lag that grows, or does not move, worth a
 * sentence: fewer may be chance. */
#define STATUS_LOOKS 3

/** Compares the report in hand with an earlier one. In the caller's
 * transaction. */
enum status status_rate_read(struct status_reading *reading,
                             const struct status_report *before,
                             struct diag *diag) MUST_CHECK;

/** Whether some consumer replays and runs: a second look tells how fast. */
bool status_rate_is_worth_it(const struct status_report *report);

#endif
