/*
 * Poll -- the next page of a consumer: the messages after its checkpoints, up
 * to the high-water mark, of those of its partitions that stand furthest
 * behind. Its partitions are the ones whose leases this process holds.
 */
#ifndef HOST_CONSUMER_POLL_H
#define HOST_CONSUMER_POLL_H

#include "consumer/consumer.h"

/** The partitions that are read together, and the range. */
struct poll {
    int64_t *partitions; /* in the consumer's arena */
    size_t npartitions;
    int64_t after;
    int64_t upto; /* the next of the partitions stands there */
    int64_t mark; /* as far as reading was allowed */
};

bool poll_has(const struct poll *poll, int partition);

/**
 * Reads the next page into consumer->page and says for which partitions.
 * *found is false when all partitions have reached `mark`; a page may be empty
 * although there are positions to pass.
 */
enum status poll_page(struct consumer *consumer, int64_t mark,
                      struct poll *poll, bool *found,
                      struct diag *diag) MUST_CHECK;

/** Says that the page behind `through` will be read after the commit that is
 * about to come. */
void poll_announce(struct consumer *consumer, const struct poll *poll,
                   int64_t through);

/** Reads the page of these partitions again, with so many messages at most. */
enum status poll_read(struct consumer *consumer, const struct poll *poll,
                      size_t limit, struct diag *diag) MUST_CHECK;

/** Reads what was announced, so that the next poll_page finds it in memory. */
void poll_fetch(struct consumer *consumer, const struct poll *poll);

#endif
