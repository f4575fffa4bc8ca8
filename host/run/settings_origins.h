/*
 * Settings origins -- each key's value as it is shown, and where it came from.
 * Part of settings.c; settings_print.c shows them.
 */
#ifndef HOST_RUN_SETTINGS_ORIGINS_H
#define HOST_RUN_SETTINGS_ORIGINS_H

#include "script/table_file.h"

#include <stddef.h>

/** A value as JSON and where it came from; both are owned. */
struct settings_origin {
    char *name; /* key */
    char *value;
    char *where;
};

struct settings_origins {
    struct settings_origin *items;
    size_t count;
};

/** Remembers value and origin of a key, in place of what was there. */
void settings_origins_set(struct settings_origins *origins, const char *name,
                          const struct table_entry *entry, const char *where);

/** Where the value of a key came from, or NULL. */
const char *settings_origins_where(const struct settings_origins *origins,
                                   const char *name);

/** Frees them and what they are in; NULL is allowed. */
void settings_origins_free(struct settings_origins *origins);

#endif
