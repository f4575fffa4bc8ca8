/*
 * Script check -- a process of its own that loads what lies in the scripts
 * folder and ends: scripts that loop or crash while they are loaded must hit
 * neither the supervisor nor a worker that has batches to apply.
 *
 * It tells the outcome over a channel (CHANNEL_LOADED, CHANNEL_FAILED), and
 * leaves what it loaded in memory that its supervisor has made: the length of
 * the version's description (4 bytes, little-endian), the description
 * (script_version_write), the bundle.
 */
#ifndef HOST_RUN_SCRIPT_CHECK_H
#define HOST_RUN_SCRIPT_CHECK_H

#include "run/script_version.h"
#include "run/settings.h"

#include <sys/types.h>

/* What it finds open. */
#define SCRIPT_CHECK_CHANNEL_FD 3
#define SCRIPT_CHECK_OUT_FD     4

/** Call first. USAGE: it was not started by a supervisor. */
enum status script_check_attach(pid_t supervisor, struct diag *diag) MUST_CHECK;
/** The process, to its end. */
enum status script_check_run(const struct settings *settings,
                             struct diag *diag) MUST_CHECK;
/** For what goes wrong before that. */
void script_check_tell_failure(const struct diag *diag);

/** The supervisor's side: takes apart what it left in `fd`; the version is
 * freed with script_version_free. INVALID: it does not keep to the above. */
enum status script_check_take(int fd, struct script_version *version,
                              struct buffer *bundle,
                              struct diag *diag) MUST_CHECK;

#endif
