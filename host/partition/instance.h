/*
 * Instance -- the row that says that a process lives, in PARTITION_INSTANCES.
 *
 * Everything that an instance holds is live while its row is: `expires_at`, by
 * the database's clock, lies ahead. A lapsed instance that turns out to live
 * has only to refresh its row; what others have taken over meanwhile is lost to
 * it, and the generation of those leases tells it so. Ids are random per run.
 */
#ifndef HOST_PARTITION_INSTANCE_H
#define HOST_PARTITION_INSTANCE_H

#include "base/uuid.h"
#include "db/catalog.h"
#include "db/db.h"

/** Makes a new id. */
void instance_new_id(struct uuid_source *ids, char id[UUID_TEXT_LEN + 1]);

/** Queues the row of one instance, with the name of this machine. */
enum status instance_write(struct db *db, const struct catalog *catalog,
                           const char *id, int64_t lives_us,
                           struct diag *diag) MUST_CHECK;

/** The heartbeat of `count` instances: one statement, its own transaction.
 * *refreshed of them had a row; one that has none writes it anew. */
enum status instance_refresh(struct db *db, const struct catalog *catalog,
                             const char *const *ids, size_t count,
                             int64_t lives_us, int64_t *refreshed,
                             struct diag *diag) MUST_CHECK;

/** Instances that have ended: their leases are free, their memberships and
 * rows are gone. Its own transaction, which may be repeated. */
enum status instance_end(struct db *db, const struct catalog *catalog,
                         const char *const *ids, size_t count,
                         struct diag *diag) MUST_CHECK;

#endif
