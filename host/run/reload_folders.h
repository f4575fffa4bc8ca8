/*
 * Reload folders -- where a change of a file may be another version of the
 * scripts: the scripts folder with all below it, the folders of the files that
 * the version was made of, and the application's own.
 */
#ifndef HOST_RUN_RELOAD_FOLDERS_H
#define HOST_RUN_RELOAD_FOLDERS_H

#include "run/script_version.h"
#include "run/settings.h"
#include "run/watch.h"

#include <stdbool.h>

/** Watches them; `version` may be NULL or empty. To be said again when the
 * version or a folder has changed. */
void reload_folders_watch(struct watch *watch, const struct settings *settings,
                          const struct script_version *version);

/** Whether a change of `name` in `folder` matters: a script, a file of the
 * version, or a folder. */
bool reload_folders_wanted(const struct settings *settings,
                           const struct script_version *version,
                           const char *folder, const char *name);

#endif
