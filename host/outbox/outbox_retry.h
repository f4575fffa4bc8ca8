/*
 * Outbox retry -- parked messages that an operator has tried again.
 */
#ifndef HOST_OUTBOX_OUTBOX_RETRY_H
#define HOST_OUTBOX_OUTBOX_RETRY_H

#include "consumer/operate.h"
#include "outbox/outbox_list.h"

/** Makes the parked ones pending again, due now and as if they had never been
 * tried, in transactions of OPERATION_ROWS rows (consumer/operation_walk.h).
 * `status` of the filter does not count. */
enum status outbox_retry(const struct operate_env *env,
                         const struct outbox_filter *filter, int64_t *changed,
                         struct diag *diag) MUST_CHECK;

#endif
