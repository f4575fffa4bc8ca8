/*
 * Snapshot -- the stored state of an aggregate at one of its events, so that
 * loading it need not begin at the first. It only saves time: without any the
 * same comes out. A version is the declaration's; others are not looked at.
 */
#ifndef HOST_MODEL_SNAPSHOT_H
#define HOST_MODEL_SNAPSHOT_H

#include "base/arena.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

struct snapshots; /* model/snapshot.c: the tables and their statements */

/** `names` is borrowed. */
enum status snapshots_open(const char *dialect, const struct names *names,
                           struct snapshots **snapshots,
                           struct diag *diag) MUST_CHECK;
void snapshots_close(struct snapshots *snapshots); /* NULL is allowed */

/** Of which aggregate, in which version. Borrowed. */
struct snapshot_of {
    struct text aggregate_type;
    struct text aggregate_id;
    int version;
};

struct snapshot {
    bool found;
    int64_t sequence;  /* of the last event that is in the state */
    struct text state; /* JSON; lives in the arena */
};

/** Reads the latest one. */
enum status snapshot_read(struct snapshots *snapshots, struct db *db,
                          const struct snapshot_of *of, struct arena *arena,
                          struct snapshot *snapshot,
                          struct diag *diag) MUST_CHECK;

/** Queues one under the given id, and the end of those that it replaces: of
 * this version and of earlier ones. `arena` holds what is queued; the state
 * must live until the queue was sent. */
enum status snapshot_write(struct snapshots *snapshots, struct db *db,
                           const struct snapshot_of *of,
                           const struct snapshot *snapshot, struct uuid id,
                           int64_t now_us, struct arena *arena,
                           struct diag *diag) MUST_CHECK;

#endif
