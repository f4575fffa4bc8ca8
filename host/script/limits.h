/*
 * Limits -- what stops a script that does not stop: a counting allocator with
 * an upper bound, and a deadline that is checked by a count hook and by long
 * loops in C. Both fail the running call, never the host.
 *
 * A process that was stopped, or whose machine was, did not run: such a gap
 * between two looks at the clock, in which no processor time was used and no
 * C function waited for the script (limits_spent), moves the deadline.
 *
 * LuaJIT does not count nested C calls, so the same hook watches how deep the
 * C stack is, and C functions that call back into a script ask as well.
 *
 * The deadline is sticky: once it has passed every next instruction raises,
 * so a script cannot argue with it by pcall. Hooks do not run in compiled
 * code: with the JIT engine on only C functions notice the deadline.
 */
#ifndef HOST_SCRIPT_LIMITS_H
#define HOST_SCRIPT_LIMITS_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITS_TEXT_SIZE 160

/** The part of a stack that belongs to what has called the host. */
struct limits_caller {
    lua_State *thread;
    int levels;
};

/** One per Lua state, first member of what the allocator's data points to. */
struct limits {
    int64_t time_us;       /* per outermost call */
    size_t memory;         /* bytes */
    size_t used;           /* bytes the state holds */
    int64_t deadline;      /* clock_monotonic; INT64_MAX: no call runs */
    bool expired;          /* the running call passed its deadline */
    bool refused;          /* the allocator said no during the running call */
    bool loads;            /* files are run that declare, and no handler yet */
    bool deep;             /* the C stack passed its bound and is still there */
    int64_t seen;          /* the last look at the clock */
    int64_t cpu, cpu_seen; /* processor time, and when it was read */
    int stalls;            /* gaps that moved the deadline of this call */
    uintptr_t stack_room;  /* bytes of C stack that a call may take */
    uintptr_t stack_bound; /* addresses below it are too deep; 0: none */
    char where[LIMITS_TEXT_SIZE]; /* "file:line" that was running then */
    struct limits_caller caller;  /* of a call inside of a call */
    lua_Alloc allocate;           /* what really allocates */
    void *allocate_data;
};

/** The limits of a state made by script_state_open, from any of its threads. */
static inline struct limits *limits_of(lua_State *L)
{
    void *data = NULL;

    (void)lua_getallocf(L, &data);
    return data;
}

/** Puts the counting allocator and the hook into a fresh state. */
void limits_install(lua_State *L, struct limits *limits);
/** Takes both out again, so that lua_close frees as it allocated. */
void limits_remove(lua_State *L, const struct limits *limits);

/** Before a call inside of a call: limits_where does not look at what is on the
 * stack by now. Gives what was so before, to be put back. */
struct limits_caller limits_enter(lua_State *L);

/** Starts the clock of an outermost call. */
void limits_arm(struct limits *limits);
/** Ends it; the flags stay readable until the next limits_arm. */
void limits_disarm(lua_State *L, struct limits *limits);

/** For loops in C, every few thousand steps: raises once time is over. */
void limits_check(lua_State *L);

/** After a C function that waited on behalf of the script (a database call):
 * that time counts, although no processor was used. */
void limits_spent(lua_State *L);

/** "file:line" of the innermost frame that runs a file's code (not a chunk of
 * the host's own), "" when there is none. Allocates nothing. */
void limits_where(lua_State *L, char out[LIMITS_TEXT_SIZE]);
/** The same of one frame; false for any other code. */
bool limits_frame_where(lua_State *L, lua_Debug *frame,
                        char out[LIMITS_TEXT_SIZE]);

/** For C functions that call back into a script: raises "C stack overflow"
 * when calls are nested too deeply. */
void limits_check_stack(lua_State *L);
/** The same as a question. */
bool limits_is_deep(const struct limits *limits);

/** "handler ran longer than limits.time = 5s" and the like; "script ..." where
 * it is a file that is loaded. */
void limits_time_text(const struct limits *limits, char out[LIMITS_TEXT_SIZE]);
void limits_memory_text(const struct limits *limits,
                        char out[LIMITS_TEXT_SIZE]);

#endif
