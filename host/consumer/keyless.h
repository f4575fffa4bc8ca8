/*
 * Keyless -- a message whose keys are not known has a row in each partition
 * that met it, and is one message for whoever holds them. Two instances count
 * apart; when one takes over what the other held, the rows are to be one again.
 */
#ifndef HOST_CONSUMER_KEYLESS_H
#define HOST_CONSUMER_KEYLESS_H

#include "consumer/consumer.h"
#include "consumer/undelivered.h"

/**
 * Queues that all rows of such messages in the partitions held here, of which
 * some are due, say the same: what the one says that has failed most often.
 * *changed when any of them did not; the rows are to be read again then.
 */
enum status keyless_align(struct consumer *consumer,
                          const struct undelivered_row *due, size_t count,
                          bool *changed, struct diag *diag) MUST_CHECK;

#endif
