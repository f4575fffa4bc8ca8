/*
 * Careful page -- how a page is counted as a whole before it is applied, by who
 * reads on with care (consumer/careful.h) and knows of one death only: that one
 * may have had any cause. In each partition of the page one row stands for all
 * that is tried of it there: the one of the first such message, with no failure
 * to its name. It lies ahead of the checkpoint, where only pages come by, and
 * each page that does takes it back in its own transaction; so it never is of a
 * message that was passed. Whoever finds one that somebody else has left knows
 * that a second instance has died there, and reads message by message.
 *
 * Nothing here says that a message has failed.
 */
#ifndef HOST_CONSUMER_CAREFUL_PAGE_H
#define HOST_CONSUMER_CAREFUL_PAGE_H

#include "consumer/poll.h"
#include "consumer/recorded.h"

/** Whether the row counts a page, of whatever partitions. */
bool careful_page_counts(const struct undelivered_recorded *row);

/** Whether the row counts a page that the polled partitions have not passed. */
bool careful_page_is_row(const struct consumer *consumer,
                         const struct poll *poll,
                         const struct undelivered_recorded *row);

/**
 * Counts consumer->page, and commits; nothing is committed when nothing of it
 * is tried, or all of it is counted already. `recorded` is what is there up to
 * the page's end and further, to consumer->counted.page_through at least.
 */
enum status careful_page_count(struct consumer *consumer,
                               const struct poll *poll,
                               const struct recorded *recorded,
                               struct diag *diag) MUST_CHECK;

/** Takes such rows out of what was read, whoever they are of, and queues that
 * those of the polled partitions are deleted. */
enum status careful_page_take_back(struct consumer *consumer,
                                   const struct poll *poll,
                                   struct recorded *recorded,
                                   struct diag *diag) MUST_CHECK;

/** After the commit of that. */
void careful_page_passed(struct consumer *consumer, const struct poll *poll);

/** Before a stop: takes back what this process has counted and not applied. */
enum status careful_page_end(struct consumer *consumer,
                             struct diag *diag) MUST_CHECK;

#endif
