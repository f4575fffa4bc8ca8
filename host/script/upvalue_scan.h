/*
 * Upvalue scan -- warns of file-level locals that a user's function assigns,
 * which survive messages and rollbacks, and finds the global variables that a
 * file uses, most of which are slips. Reads bytecode in a Lua state of its
 * own, because the libraries for that are not for scripts.
 */
#ifndef HOST_SCRIPT_UPVALUE_SCAN_H
#define HOST_SCRIPT_UPVALUE_SCAN_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

struct upvalue_scan; /* script/upvalue_scan.c */

/** Where a function was defined. Strings are borrowed for the call. */
struct upvalue_function {
    const char *chunk; /* "handlers/x.lua" */
    int first, last;   /* lines */
};

typedef void (*upvalue_fn)(void *arg, const char *variable, int line);

/** NULL when there is no memory or no jit.util: then nothing is warned of. */
struct upvalue_scan *upvalue_scan_open(const char *app_dir);
void upvalue_scan_close(struct upvalue_scan *scan); /* NULL is allowed */

/** Calls fn for each assignment. A file that cannot be read has none. */
void upvalue_scan_function(struct upvalue_scan *scan,
                           const struct upvalue_function *function,
                           upvalue_fn fn, void *arg);

typedef void (*global_fn)(void *arg, const char *variable, int line,
                          bool assigned);

/** Calls fn for each global variable that the file uses, by lines. */
void upvalue_scan_globals(struct upvalue_scan *scan, const char *chunk,
                          global_fn fn, void *arg);

#endif
