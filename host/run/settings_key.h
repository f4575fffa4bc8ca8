/*
 * Settings key -- the table of configuration keys, and what is said about a
 * name that is none. Part of settings.c, as are settings_value.h and
 * settings_origins.h.
 */
#ifndef HOST_RUN_SETTINGS_KEY_H
#define HOST_RUN_SETTINGS_KEY_H

#include "run/settings.h"
#include "script/table_file.h"

#include <stddef.h>

enum settings_kind {
    SETTINGS_TEXT,     /* char *, not empty */
    SETTINGS_DATABASE, /* the same, a URL */
    SETTINGS_NOTIFY,   /* the same, may be empty */
    SETTINGS_PREFIX,   /* text, may be empty */
    SETTINGS_INTEGER,  /* int */
    SETTINGS_COUNT,    /* int64_t, a whole number */
    SETTINGS_NUMBER,   /* double */
    SETTINGS_DURATION, /* int64_t, microseconds */
    SETTINGS_SIZE,     /* int64_t, bytes */
    SETTINGS_BOOLEAN,  /* bool */
    SETTINGS_LIST,     /* char **, NULL-terminated */
    SETTINGS_LEVEL,    /* enum log_level */
    SETTINGS_FORMAT,   /* enum log_format */
    SETTINGS_POLICY,   /* enum error_policy */
};

struct settings_key {
    const char *name;
    enum settings_kind kind;
    size_t target;        /* offset in struct settings */
    const char *fallback; /* as text; NULL: decided when it is needed */
    bool or_none;         /* "none" is stored as 0 */
    int64_t min, max;     /* of numbers; units as stored */
    const char *allowed;  /* for the message: "a whole number from 1 to 9" */
    const char *doc;
};

/** The keys that work; ends with a NULL name. */
extern const struct settings_key settings_keys[];
#define SETTINGS_KEY_MAX 40

/** The key, or NULL. */
const struct settings_key *settings_key_find(const char *name);

/**
 * OK when `name` may be passed over in silence: an empty table of known keys.
 * Otherwise CONFIG: not available yet, a table where a value is wanted, or
 * unknown, with the nearest known key. `where` starts the message.
 */
enum status settings_key_unknown(const char *where,
                                 const struct table_entry *entry,
                                 struct diag *diag) MUST_CHECK;

#endif
