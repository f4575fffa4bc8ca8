/*
 * Rebuild key -- derives one read model of a consumer anew, while the others
 * stay as they are and the consumer runs on.
 */
#ifndef HOST_CONSUMER_REBUILD_KEY_H
#define HOST_CONSUMER_REBUILD_KEY_H

#include "consumer/consumer.h"

/**
 * Derives the read model of one key anew, up to the checkpoint of its
 * partition, in one transaction; undelivered messages of the key go with it.
 * *applied is the number of its messages. FAILED: a handler failed, *failure
 * says why, and nothing has changed. REFUSED: it cannot be done now.
 */
enum status rebuild_key(struct consumer *consumer, struct text key,
                        int64_t *applied, struct failure *failure,
                        struct diag *diag) MUST_CHECK;

#endif
