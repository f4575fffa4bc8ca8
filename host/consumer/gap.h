/*
 * Gap -- history that a consumer has not read and its topic no longer holds.
 * It is judged by the topic's start alone: holes are normal (design 3).
 */
#ifndef HOST_CONSUMER_GAP_H
#define HOST_CONSUMER_GAP_H

#include "consumer/consumer.h"

/** Whether some partition stands below `start`, up to which all is gone. */
bool gap_is_met(const struct consumer *consumer, int64_t start);

/**
 * In one transaction: halts the consumer with MISSING_HISTORY, or lets it go
 * on behind the gap with `incomplete_through` on every row of its read, as the
 * declaration says. It is logged.
 */
enum status gap_settle(struct consumer *consumer, int64_t start,
                       struct diag *diag) MUST_CHECK;

#endif
