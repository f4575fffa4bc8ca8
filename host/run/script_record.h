/*
 * Script record -- SCRIPT_VERSIONS: which version of the scripts a host runs,
 * since when and what changed, and what it has refused. For people, on every
 * machine that sees the database; nothing is decided by it.
 */
#ifndef HOST_RUN_SCRIPT_RECORD_H
#define HOST_RUN_SCRIPT_RECORD_H

#include "base/digest.h"
#include "run/application.h"

/* The host says so often that it still runs its version. */
#define SCRIPT_RECORD_SEEN_US (30 * CLOCK_SECOND)
/* So long after the last time it counts as gone. */
#define SCRIPT_RECORD_GONE_US (4 * SCRIPT_RECORD_SEEN_US)

/* Characters of the columns; what is longer is cut. */
#define SCRIPT_RECORD_TEXT 4000

struct script_record {
    bool live;                    /* else it was refused */
    char version[DIGEST_LEN + 1]; /* "": it could not even be loaded */
    struct buffer declared;       /* of a live one (run/undeclared.h) */
    struct buffer changes;
    struct buffer error;
};

void script_record_free(struct script_record *record);

/** One transaction: writes it under the host's id, and deletes the oldest of
 * its machine. */
enum status script_record_write(struct application *app,
                                const struct uuid *host,
                                const struct script_record *record,
                                struct diag *diag) MUST_CHECK;

/** The host still runs its version (`ended`: it does no more). */
enum status script_record_seen(struct application *app, const struct uuid *host,
                               bool ended, struct diag *diag) MUST_CHECK;

#endif
