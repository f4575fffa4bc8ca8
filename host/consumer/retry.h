/*
 * Retry -- applies undelivered messages that are due, and those that wait
 * behind them, in position order, in one processing transaction.
 */
#ifndef HOST_CONSUMER_RETRY_H
#define HOST_CONSUMER_RETRY_H

#include "consumer/consumer.h"

/** *worked says whether there was anything due. Statuses as consumer_step. */
enum status retry_due(struct consumer *consumer, bool *worked,
                      struct diag *diag) MUST_CHECK;

#endif
