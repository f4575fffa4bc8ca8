/*
 * Table file -- a Lua file that returns a table, run in an empty environment
 * with env "NAME" and file "PATH"; the configuration is one. Gives its leaves
 * as flat entries: "poll.min_interval" = "5ms".
 */
#ifndef HOST_SCRIPT_TABLE_FILE_H
#define HOST_SCRIPT_TABLE_FILE_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct lua_State;

enum table_kind {
    TABLE_STRING,
    TABLE_NUMBER,
    TABLE_BOOLEAN,
    TABLE_LIST, /* a list of strings; empty table too */
};

struct table_entry {
    const char *key; /* dotted path */
    enum table_kind kind;
    struct text string;
    double number;
    bool boolean;
    const struct text *items;
    size_t nitems;
};

/** Returns OK to go on. The entry is valid during the call. */
typedef enum status (*table_entry_fn)(void *arg,
                                      const struct table_entry *entry,
                                      struct diag *diag);

/** CONFIG: the file cannot be read, does not compile, raises, returns no
 * table, or has a value of another type, with "file:line" where there is
 * one. Entries come sorted by key. */
enum status table_file_load(const char *path, table_entry_fn fn, void *arg,
                            struct diag *diag) MUST_CHECK;

/** The same in two steps: the bytes of the file, and what they say. `path` is
 * where they come from. */
enum status table_file_read(const char *path, struct buffer *source,
                            struct diag *diag) MUST_CHECK;
enum status table_file_run(const char *path, struct text source,
                           table_entry_fn fn, void *arg,
                           struct diag *diag) MUST_CHECK;

/** The same for a table on the stack of a Lua state (testing kit). Raises
 * nothing but a memory error. */
enum status table_file_visit(struct lua_State *L, int index, const char *name,
                             table_entry_fn fn, void *arg,
                             struct diag *diag) MUST_CHECK;

#endif
