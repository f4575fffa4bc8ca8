/*
 * Outbox list -- what is staged, as an operator sees it. This module never
 * begins or commits.
 */
#ifndef HOST_OUTBOX_OUTBOX_LIST_H
#define HOST_OUTBOX_OUTBOX_LIST_H

#include "base/arena.h"
#include "db/catalog.h"
#include "db/db.h"

/** All that is set must hold. */
struct outbox_filter {
    const char *route;  /* NULL: any */
    const char *status; /* pending, processing, published, parked; NULL: any */
    const char *type;
    const char *id; /* of the row or of its event, lower case */
};

/** Texts are NULL where the column is. */
struct outbox_row {
    const char *id;
    const char *route;
    const char *event_id;
    const char *type;
    const char *tenant_id;
    const char *execution_id;
    const char *correlation_id;
    const char *causation_id;
    const char *ordering_key;
    const char *metadata; /* JSON */
    const char *payload;  /* JSON; NULL unless asked for */
    const char *status;
    int64_t attempts;
    const char *last_error;
    int64_t occurred_at;
    int64_t created_at;
    int64_t available_at;
    int64_t published_at; /* 0: it was not */
};

struct outbox_rows {
    struct outbox_row *items;
    size_t count;
    bool more; /* there are others behind them */
};

/** Reads the first `limit` rows in the order of staging, into `arena`. */
enum status outbox_list(struct db *db, const struct catalog *catalog,
                        const struct outbox_filter *filter, size_t limit,
                        bool payloads, struct arena *arena,
                        struct outbox_rows *rows, struct diag *diag) MUST_CHECK;

/** What waits for one publisher. */
struct outbox_pending {
    const char *route;
    int64_t count;
    int64_t oldest_at; /* when the oldest was staged */
};

/** Those with anything, by name, into `arena`. */
enum status outbox_list_pending(struct db *db, const struct catalog *catalog,
                                struct arena *arena,
                                struct outbox_pending **items, size_t *count,
                                struct diag *diag) MUST_CHECK;

#endif
