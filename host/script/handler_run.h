/*
 * Handler run -- one protected call of user code on behalf of a model: sets
 * up what event and ctx show, calls, and turns what went wrong into a failure
 * that names a script's line. script/handler_call.c says what is called.
 */
#ifndef HOST_SCRIPT_HANDLER_RUN_H
#define HOST_SCRIPT_HANDLER_RUN_H

#include "script/handler_code.h"

enum handler_entry {
    ENTRY_KEYS,
    ENTRY_INITIAL,
    ENTRY_DECODE,
    ENTRY_APPLY_STATE,
    ENTRY_APPLY,
    ENTRY_APPLY_EVENT,
    ENTRY_COMMAND,
    ENTRY_ENCODE,
    ENTRY_ON_ERROR,
    ENTRY_RESET,
    ENTRY_SAGA_PARTS,
    ENTRY_SAGA,
    ENTRY_COUNT
};

_Static_assert(ENTRY_COUNT == 12, "handler_code.entries has one for each");

/** What one protected call works on. */
struct handler_job {
    struct handler_code *code;
    const struct handler_call *call;
    struct failure *failure;
    bool failed; /* *failure is set: not by a raise, but by a wrong result */
    /* what the message is for the function that runs (handler_parts.h) */
    struct text type;
    bool declared; /* its type is an event type of the script */
    const struct event_type *splits; /* older, of a type that may be split */
    int part;                        /* from 1; 0: it is whole */
    int part_at;                     /* stack index of the part */
    bool needs_all; /* no handler for it: an error, not somebody else's event */
    size_t slot;
    struct text json;
    enum handler_outcome outcome;
    handler_key_fn emit;
    const struct failure *happened; /* ON_ERROR: what the message met */
    int failures;
    enum error_policy policy;
    const struct handler_command *command;
    struct handler_decision *decision;
    void *arg;
    struct buffer *out;
    struct db_value *fields;
    struct arena *arena;
    struct handler_saga *saga;  /* SAGA */
    struct handler_part *parts; /* SAGA_PARTS: what it is */
    size_t nparts;
};

/** Runs the entry function (code->entries) on the job. OK; FAILED with
 * *job->failure; anything else is the database's, in `diag`. */
enum status handler_run(struct handler_code *code, enum handler_entry entry,
                        struct handler_job *job, struct diag *diag) MUST_CHECK;

/** Registry reference of the states that the job's slot is one of, and of the
 * function of the job's command. */
int handler_run_slots(const struct handler_job *job);
int handler_run_command(const struct handler_job *job);

/** Puts the table at the top into the job's slot; pops it. */
void handler_run_fill(lua_State *L, const struct handler_job *job);

/** A failure that a test has asked for comes instead of the call. */
bool handler_run_fails_as_asked(struct handler_code *code,
                                const struct handler_call *call,
                                struct failure *failure);

/** Pushes what `initial` gives for the call's key, or an empty table; pushes
 * nothing when it sets job->failed. */
void handler_run_push_initial(lua_State *L, struct handler_job *job);

/** From an entry function: the job has set its failure. */
int handler_run_fail(struct handler_job *job);

/** The user's functions of the job's declaration. */
const struct declare_code *handler_run_code(const struct handler_job *job);

/** "handlers/x.lua:12", where the function at the stack's index begins. */
void handler_run_where(lua_State *L, int index, char *out, size_t size);

/** Takes down where every function of the declarations begins; raises when
 * there is no memory. */
void handler_run_note_wheres(struct handler_code *code, lua_State *L);

#endif
