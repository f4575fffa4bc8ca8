/*
 * Coordinator -- one instance's part in dividing the partitions of its
 * consumers among all instances that run them.
 *
 * A look reads, in one statement, who lives and who holds what, and decides:
 * what is assigned elsewhere is to be handed over, what is free or was held by
 * one that has lapsed, and is assigned here, is to be taken. Acting on it is a
 * few statements, however many consumers there are. Between the two, which is
 * between two batches, the caller saves what it knows of the partitions that
 * leave. Every claim raises the lease's generation.
 *
 * Nothing here waits for anybody: a lease that somebody has locked is left for
 * the next look.
 */
#ifndef HOST_PARTITION_COORDINATOR_H
#define HOST_PARTITION_COORDINATOR_H

#include "base/arena.h"
#include "base/uuid.h"
#include "db/catalog.h"
#include "db/db.h"
#include "partition/leases.h"

/** How long things take, in microseconds (settings lease.*). */
struct coordinator_times {
    int64_t duration;  /* an instance lives so long without a heartbeat */
    int64_t heartbeat; /* and has one so often */
    int64_t rebalance; /* who holds what is looked at so often */
};

/** One consumer that the instance runs. */
struct coordinator_consumer {
    const char *type, *name; /* borrowed */
    bool together;           /* distribution = "single-owner" */
    struct leases *leases;   /* borrowed; filled here */
    bool changing;           /* by the last look: some of it comes or goes */
    bool away;               /* it is no member of it and holds nothing of it */
};

struct coordinator {
    struct db *db;
    const struct catalog *catalog;
    struct coordinator_times times;
    char id[UUID_TEXT_LEN + 1];
    bool beats; /* its heartbeat is its own, and not a supervisor's */
    struct coordinator_consumer *consumers; /* borrowed */
    size_t count;
    int partitions;

    /* Fields for coordinator.c, _act.c and _view.c. */
    bool joined;
    bool outdated;   /* who is away has changed since it joined */
    bool awaits;     /* something that is assigned here is not held yet */
    int64_t beat_at; /* monotonic: last heartbeat */
    int64_t look_at; /* monotonic: when to look next */
    struct arena arena;
    struct coordinator_change *changes; /* what the last look decided */
    size_t nchanges;
    struct text *lapsed; /* instances */
    size_t nlapsed;
    bool lacks_rows; /* leases of some consumer were never written */
};

/** `id` NULL: a new one. The consumers may be none yet. */
void coordinator_init(struct coordinator *k, struct db *db,
                      const struct catalog *catalog,
                      const struct coordinator_times *times, int partitions,
                      struct uuid_source *ids, const char *id);
void coordinator_free(struct coordinator *k);

/** Writes the instance's row and its memberships; again after the consumers
 * have changed (what it runs no more it lets go of), or when it was taken for
 * dead. */
enum status coordinator_join(struct coordinator *k,
                             struct diag *diag) MUST_CHECK;

/** Lets go of one of its consumers until it is back, with the next join. What
 * is held of it may not be applied from now on. */
void coordinator_stay_away(struct coordinator *k, size_t consumer, bool away);
/** Whether its memberships are to be written before anything else. */
bool coordinator_is_outdated(const struct coordinator *k);

/** Its heartbeat, when it is time for one and it beats itself. */
enum status coordinator_beat(struct coordinator *k,
                             struct diag *diag) MUST_CHECK;

/** Whether it is time to look. */
bool coordinator_is_due(const struct coordinator *k);
/** Makes it time: a lease turned out to be lost. */
void coordinator_look_soon(struct coordinator *k);
/** Microseconds until it is time for a heartbeat or a look. */
int64_t coordinator_left(const struct coordinator *k);

/** Reads and decides. What was lost is dropped at once; *acts says that
 * coordinator_act has something to do. */
enum status coordinator_look(struct coordinator *k, bool *acts,
                             struct diag *diag) MUST_CHECK;
/** Hands over and takes. */
enum status coordinator_act(struct coordinator *k,
                            struct diag *diag) MUST_CHECK;

/** Lets go of everything and ends the instance. */
enum status coordinator_leave(struct coordinator *k,
                              struct diag *diag) MUST_CHECK;

#endif
