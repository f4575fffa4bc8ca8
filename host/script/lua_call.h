/*
 * Lua call -- the one place that enters Lua under protection. It arms the
 * limits, turns every way a call can end into an outcome with a message for a
 * person, and leaves the stack balanced.
 *
 * Costs a clock read and a lua_pcall when all goes well, and allocates
 * nothing. A call inside a call (ctx:try) keeps the deadline of the outermost.
 *
 * From C: lua_call_run with a C function that does all that may raise.
 */
#ifndef HOST_SCRIPT_LUA_CALL_H
#define HOST_SCRIPT_LUA_CALL_H

#include "base/text.h"
#include "consumer/failure.h"
#include "script/state.h"

enum lua_outcome {
    LUA_CALL_OK,
    LUA_CALL_ERROR,     /* the script raised */
    LUA_CALL_PERMANENT, /* the script raised moontide.permanent */
    LUA_CALL_TIMEOUT,   /* limits.time; sticky in all outer calls */
    LUA_CALL_MEMORY,    /* limits.memory; sticky in all outer calls */
    LUA_CALL_HOST,      /* lua_call_raise_host: `host` has its diag unchanged */
};

/** Filled for every outcome but OK, untouched by OK. May live on the stack. */
struct lua_failure {
    enum lua_outcome outcome;
    /** "handlers/x.lua:12: why": valid UTF-8 without NUL, at most
     * FAILURE_REASON_CHARS characters. */
    char message[FAILURE_REASON_SIZE];
    char trace[STATE_TRACE_SIZE]; /* "\n"-separated frames, may be "" */
    struct diag host;             /* HOST only */
};

/**
 * lua_pcall(L, nargs, nresults) with all of the above. On failure nothing is
 * left on the stack of function and arguments, and nothing is pushed. `L` may
 * be any thread of the state.
 *
 * A script that swallows an error of the host, the time or the memory limit
 * fails all the same: those outcomes come back even if the function returned.
 * (HOST: unless lua_call_protected inside it took it, see ctx:try.)
 */
enum lua_outcome lua_call_protected(lua_State *L, int nargs, int nresults,
                                    struct lua_failure *failure) MUST_CHECK;

/** Prepares a fresh state for the calls below. False: not enough memory. */
bool lua_call_init(struct script_state *state) MUST_CHECK;

/** Runs fn(L) protected on the main thread, with `arg` as light userdata at
 * index 1, alone on the stack; results are dropped. Allocates nothing. */
enum lua_outcome lua_call_run(struct script_state *state, lua_CFunction fn,
                              void *arg,
                              struct lua_failure *failure) MUST_CHECK;

/** The same on a foreign state (testing kit): no limits, text of the error. */
enum status lua_call_foreign(lua_State *L, lua_CFunction fn, void *arg,
                             struct diag *diag) MUST_CHECK;

/** From a C function under a protected call: raises so that the call ends
 * with HOST and this diag, whatever the script does about it. The script sees
 * "script:line: message". Never returns. */
int lua_call_raise_host(lua_State *L, const struct diag *diag);

/** Raises again what a nested call gave: "file:line: why" or the marker of
 * its outcome (permanent stays permanent, host stays host). Never returns. */
int lua_call_raise_failure(lua_State *L, const struct lua_failure *failure);

/** "script:line" of the Lua code that called the running C function, "" when
 * there is none. Allocates nothing. */
void lua_call_where(lua_State *L, char out[LIMITS_TEXT_SIZE]);

/** moontide.permanent(message): the value to raise; remembers its caller. */
int lua_call_permanent(lua_State *L);

/** Pushes the function of a text chunk ("@handlers/x.lua"), which sees the
 * sandbox; bytecode is refused. Never raises. CONFIG: "file:line: what". */
enum status lua_call_load(lua_State *L, struct text source, const char *name,
                          struct diag *diag) MUST_CHECK;

/** Class word for failure_set: "error", "timeout", "memory". */
const char *lua_call_class(enum lua_outcome outcome);

/** What the models want to know of a failed call: FAILED with *failure, or
 * (HOST) the status of the database with its diag. */
static inline enum status lua_call_report(const struct lua_failure *from,
                                          struct failure *failure,
                                          struct diag *diag)
{
    if (from->outcome == LUA_CALL_HOST) {
        if (diag != NULL)
            *diag = from->host;
        return from->host.status;
    }
    failure_set(failure, from->outcome == LUA_CALL_PERMANENT,
                lua_call_class(from->outcome), "%s", from->message);
    return STATUS_FAILED;
}

#endif
