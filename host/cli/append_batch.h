/*
 * Append batch -- the events of one transaction of `moontide append` or
 * `moontide emit`: read, written as a whole, tried again where that is safe.
 */
#ifndef HOST_CLI_APPEND_BATCH_H
#define HOST_CLI_APPEND_BATCH_H

#include "cli/ndjson.h"
#include "run/application.h"

#include <signal.h>

struct append_batch {
    enum ndjson_kind kind;
    struct append_event *events;
    struct append_result *results; /* of the last write */
    int64_t *lines;                /* where each event was read */
    size_t count;
    size_t capacity; /* events of one transaction */
    bool unknown; /* the last write failed, but its commit may have been done */
};

void append_batch_init(struct append_batch *batch, enum ndjson_kind kind,
                       size_t capacity);
void append_batch_free(struct append_batch *batch);

/**
 * Reads the next events, fewer than wanted at the end of the input or when
 * they get too many bytes; *ended is set when there are no more.
 * Statuses are those of ndjson_next; STOPPED only when *stop is set.
 */
enum status append_batch_read(struct append_batch *batch, struct ndjson *reader,
                              const volatile sig_atomic_t *stop, bool *ended,
                              struct diag *diag) MUST_CHECK;

/**
 * Writes the events in one transaction. After a conflict or a lost connection
 * it is tried again for some seconds, under the same ids, so that a commit
 * whose answer was lost appends nothing twice. *bad as in append_events;
 * unless OK is returned nothing was kept, or batch->unknown is set.
 */
enum status append_batch_write(struct append_batch *batch,
                               struct application *app, size_t *bad,
                               struct diag *diag) MUST_CHECK;

#endif
