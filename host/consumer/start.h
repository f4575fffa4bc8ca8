/*
 * Start -- how a consumer comes to its work: its rows are made where they are
 * missing, what halted it gets a fresh budget, its declaration is compared with
 * the stored one (consumer/declared.h), and memory takes where it stands. A
 * verb that only looks opens it instead.
 */
#ifndef HOST_CONSUMER_START_H
#define HOST_CONSUMER_START_H

#include "consumer/consumer.h"

/** Registers the consumer, gives one halted by APPLY_ERROR a fresh budget,
 * compares the declaration, and reads where it stands. One transaction, tried
 * again for a while when another host's start is in its way. */
enum status start_consumer(struct consumer *consumer,
                           struct diag *diag) MUST_CHECK;

/** For a verb: reads the row and where the consumer stands, and changes
 * nothing. REFUSED when no host has run it yet. */
enum status start_open(struct consumer *consumer, struct diag *diag) MUST_CHECK;

#endif
