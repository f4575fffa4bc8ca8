/*
 * Page units -- which units the messages of a page make: one for each key of a
 * message that a partition of the page has. A message whose keys cannot be told
 * makes none and ends the page, as does too much work for one transaction.
 */
#ifndef HOST_CONSUMER_PAGE_UNITS_H
#define HOST_CONSUMER_PAGE_UNITS_H

#include "consumer/poll.h"
#include "consumer/recorded.h"

/**
 * Turns consumer->page into consumer->units, and adds to the batch what is
 * recorded or skipped for want of keys. What is known of skips is in
 * consumer->skips, if `lock` says that there are any. *through is where the
 * checkpoints may go. Anything but OK is what the key function gave, other than
 * a failure of the message.
 */
enum status page_units(struct consumer *consumer, const struct poll *poll,
                       const struct checkpoint_lock *lock,
                       const struct recorded *recorded, int64_t *through,
                       struct diag *diag) MUST_CHECK;

/** The key of a message's unit where it is the message's own; NULL data: it has
 * none. Lives as long as the page. */
struct text page_units_key(struct consumer *consumer,
                           const struct message *message);

#endif
