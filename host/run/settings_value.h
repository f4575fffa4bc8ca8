/*
 * Settings value -- what a value of each kind of key may be, and storing it.
 * Part of settings.c.
 */
#ifndef HOST_RUN_SETTINGS_VALUE_H
#define HOST_RUN_SETTINGS_VALUE_H

#include "run/settings_key.h"

/**
 * Checks a value and stores it. `loose` takes every kind from a string, for
 * the environment and the command line. CONFIG says what is allowed;
 * `settings` is unchanged then.
 */
enum status settings_value_set(const struct settings_key *key,
                               const struct table_entry *entry, bool loose,
                               const char *where, struct settings *settings,
                               struct diag *diag) MUST_CHECK;

/**
 * Appends the value as JSON; passwords of URLs are masked. A number or a
 * boolean that came as text is shown as what it is. `key` may be NULL.
 */
void settings_value_write(const struct settings_key *key,
                          const struct table_entry *entry, struct buffer *out);

#endif
