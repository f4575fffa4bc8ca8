/*
 * Host lease -- the host's part in dividing partitions among instances
 * (partition/coordinator.h), between its batches: heartbeat, look, hand-over
 * and take-over. Part of the host; nobody else includes this.
 */
#ifndef HOST_RUN_HOST_LEASE_H
#define HOST_RUN_HOST_LEASE_H

#include "partition/coordinator.h"

struct host;

struct host_lease {
    struct coordinator coordinator;
    struct coordinator_consumer *consumers; /* one for each worker */
    bool waits_told;
};

/** Makes the instance known and takes what is free; the consumers are
 * registered. */
enum status host_lease_open(struct host *host, struct diag *diag) MUST_CHECK;
/** Lets go of everything. The rest of an instance that cannot say so lapses. */
enum status host_lease_close(struct host *host, struct diag *diag);
void host_lease_free(struct host *host);

/** Before the first use, and after the workers were replaced: what they may
 * apply is known after the next step. */
void host_lease_consumers(struct host *host);

/** Heartbeat and look, when it is time. Workers whose leases have changed are
 * to be reloaded. */
enum status host_lease_step(struct host *host, struct diag *diag) MUST_CHECK;
/** The next step looks: a lease was lost, or the connection. */
void host_lease_look_soon(struct host *host);
/** Microseconds until it is time again. */
int64_t host_lease_left(const struct host *host);

/** Whether others have applied all that they hold, up to the mark; what nobody
 * holds counts as not applied. */
enum status host_lease_others_done(struct host *host, bool *done,
                                   struct diag *diag) MUST_CHECK;

#endif
