/*
 * Config change -- whether the configuration file is still the one that a host
 * has read. A reload takes scripts only, so a host says once that the file is
 * another one, and again after it was the same in between.
 */
#ifndef HOST_RUN_CONFIG_CHANGE_H
#define HOST_RUN_CONFIG_CHANGE_H

#include "base/digest.h"
#include "base/log.h"
#include "run/settings.h"

/** Fields are for config_change.c. */
struct config_change {
    const struct settings *settings;
    char read[DIGEST_LEN + 1]; /* of the file as it was at the start */
    bool told;
};

/** The file is as the host has read it. `settings` is borrowed. */
void config_change_begin(struct config_change *change,
                         const struct settings *settings);

/** Looks at it again, and writes a log line when there is something to tell. A
 * file that cannot be read is left for later: maybe it is just being saved. */
void config_change_tell(struct config_change *change, const struct log *log);

#endif
