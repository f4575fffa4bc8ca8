/*
 * Rebuild run -- a rebuild as `moontide rebuild` and the testing kit ask for
 * it: finds the declared consumer, refuses what cannot be rebuilt, and does it.
 */
#ifndef HOST_RUN_REBUILD_RUN_H
#define HOST_RUN_REBUILD_RUN_H

#include "consumer/rebuild.h"
#include "run/application.h"
#include "run/declared_consumer.h"

struct rebuild_order {
    const char *consumer; /* its name */
    const char *key;      /* NULL: all keys */
    bool cancel;
    bool restart; /* also one that replays already */
};

struct rebuild_report {
    struct rebuild_result asked; /* what the question changed */
    struct rebuild_result reset; /* what the reset changed */
    int64_t applied;             /* messages of the one key */
};

/**
 * The application needs its database, tables and scripts. REFUSED: nobody
 * declares such a consumer, or it cannot be rebuilt (an SQL projection without
 * `reset`), with what to do. FAILED: `reset` or, for one key, a handler
 * failed; nothing was changed (after a failed `reset` of a consumer whose
 * declaration is as it was, it stays REBUILDING, and the next rebuild tries it
 * again).
 */
enum status rebuild_run(struct application *app,
                        const struct rebuild_order *order,
                        struct rebuild_report *report,
                        struct diag *diag) MUST_CHECK;

/**
 * Rebuilds a consumer by another declaration than it was run with, or with
 * another table, in one transaction; but a query table of another shape is
 * dropped before and made behind it while the consumer is halted, and a crash
 * in between leaves it so, maybe without a table, and the next rebuild goes on.
 * REFUSED when the table does not fit and schema.create is off. CONFLICT when
 * somebody else has just done it.
 */
enum status rebuild_changed(struct application *app,
                            struct declared_consumer *declared,
                            struct rebuild_report *report,
                            struct diag *diag) MUST_CHECK;

/** How far a replay has come. */
struct rebuild_progress {
    bool replaying;
    enum consumer_state state;
    int64_t done; /* position that every partition has passed */
    int64_t through;
    int64_t since_us; /* when its state changed last: the reset, mostly */
    int64_t hosts;    /* live instances that run it; only while it replays */
};

/** Reads it. */
enum status rebuild_progress_read(struct application *app, const char *consumer,
                                  struct rebuild_progress *progress,
                                  struct diag *diag) MUST_CHECK;

#endif
