/*
 * Reload -- other scripts for a host that runs: they are loaded into a state
 * of their own and checked as a whole, and only if all of it is good does the
 * host switch to them, between two batches. Nothing of the old state is used
 * by a batch after that, and nothing of the new one before.
 *
 * Whoever calls this stands between two steps of the host.
 */
#ifndef HOST_RUN_RELOAD_H
#define HOST_RUN_RELOAD_H

#include "run/host.h"
#include "run/script_version.h"

/** Freed with reload_report_free. */
struct reload_report {
    bool changed; /* false: what lies there is what runs */
    char version[DIGEST_LEN + 1];
    char former[DIGEST_LEN + 1];
    struct buffer changes; /* see script_version_changes */
};

void reload_report_free(struct reload_report *report);

/**
 * Loads and checks what lies in the scripts folder, and switches to it.
 * CONFIG (a script or its tables, with file and line), REFUSED (a consumer
 * would be halted, with its place in the script and what to do; `accept` says
 * that such a one goes on with the read models that it has): everything goes on
 * as it was. So it does when the database does not answer: the host's way to go
 * on after that, then again.
 */
enum status host_reload(struct host *host, bool accept,
                        struct reload_report *report,
                        struct diag *diag) MUST_CHECK;

/** How a host switches. */
struct reload_terms {
    bool accept;  /* see host_reload */
    bool checked; /* another host of the same kind did it well */
};

/**
 * The second half of it: looks whether a consumer would be halted, makes the
 * tables that `script` needs and switches. The script belongs to the host when
 * it returns OK, and to the caller else. Consumers that trouble keeps from
 * starting now stand still until they can.
 */
enum status host_switch(struct host *host, struct script *script,
                        const struct reload_terms *terms,
                        struct diag *diag) MUST_CHECK;

#endif
