/*
 * Script state -- one LuaJIT state with its limits and its sandbox; what the
 * files of this folder share. Nobody outside script/ includes it.
 *
 * Code that may raise runs inside lua_call_* only (script/lua_call.h): there
 * is no panic handler worth the name.
 */
#ifndef HOST_SCRIPT_STATE_H
#define HOST_SCRIPT_STATE_H

#include "base/log.h"
#include "base/status.h"
#include "script/limits.h"

#include <lauxlib.h>
#include <lua.h>

#define STATE_TRACE_SIZE 2048

struct state_options {
    int64_t time_us; /* limits.time */
    int64_t memory;  /* limits.memory */
    bool jit;
    const char *const *grants; /* NULL-terminated, or NULL */
    const char *app_dir;       /* absolute or relative; NULL: no require of
                                  files */
    const char *scripts;       /* relative to app_dir; may be NULL */
    const struct log *log;     /* where print goes; NULL: nowhere */
};

/** Fields are read by this folder; who writes them is said. */
struct script_state {
    struct limits limits; /* first: the allocator's data (limits.c) */
    lua_State *L;         /* main thread */
    const struct log *log;
    char *app_dir;              /* real path, NULL: none */
    char *scripts;              /* real path, NULL: none */
    struct source_set *sources; /* script.c's; NULL: none */
    bool package_granted;
    uint64_t random[4]; /* of math.random: script_state_seed */
    int globals_ref;    /* real table behind the locked globals */
    int hidden_ref;     /* what the libraries registered, never visible */
    int modules_ref;    /* name -> module of require */
    int native_ref;     /* C functions for the modules in lua/moontide */
    /* owned by lua_call.c */
    int error_ref;         /* message handler */
    int runner_ref;        /* runs the C function of lua_call_run */
    size_t collect_at;     /* bytes in use that call for a full collection */
    int depth;             /* protected calls that are open */
    bool host_failed;      /* lua_call_raise_host in the innermost call */
    struct diag host_diag; /* of that */
    char error_where[LIMITS_TEXT_SIZE]; /* "file:line" of the last error */
    char error_trace[STATE_TRACE_SIZE];
};

/** CONFIG: an unknown grant (with the nearest), a folder that is not there;
 * LIMIT: the memory limit is too small for an empty state. */
enum status script_state_open(const struct state_options *options,
                              struct script_state **state_out,
                              struct diag *diag) MUST_CHECK;
void script_state_close(struct script_state *state); /* NULL is allowed */

/** The state behind any of its threads. Never for a foreign lua_State. */
static inline struct script_state *script_state_of(lua_State *L)
{
    return (struct script_state *)limits_of(L);
}

/** Makes math.random of the next call a function of `seed` alone. */
void script_state_seed(struct script_state *state, uint64_t seed);

/** Pushes the table of C functions that the modules in lua/moontide get as
 * their second `...` argument (the first is their name). Fill it before the
 * first require "moontide". Inside protected code only. */
void script_state_push_native(struct script_state *state, lua_State *L);

#endif
