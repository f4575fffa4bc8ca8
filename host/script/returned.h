/*
 * Returned -- what the functions of a script give back, where a slip of the pen
 * would otherwise be dropped in silence: a second value, a value where nothing
 * is wanted, a member that nothing reads. The callers say what the rule is.
 */
#ifndef HOST_SCRIPT_RETURNED_H
#define HOST_SCRIPT_RETURNED_H

#include "script/handler_run.h"

/** What moontide.event can give an event; ends with NULL. */
extern const char *const returned_event_names[];

/**
 * Of the values from index `first` on leaves the first one, or a nil. False
 * when there were others than nil behind it, which `shown` says then.
 */
bool returned_one(lua_State *L, int first, char *shown, size_t size);

/** Fails the job when a value from index `first` on is not nil. The function
 * is at index `function`; `rule` says what it does instead of returning. */
int returned_nothing(lua_State *L, struct handler_job *job, int function,
                     int first, const char *rule);

/** The same, but lets pass what a function of ctx may have given, as in
 * `return ctx:update(...)`: only what says that something went wrong (false, or
 * nil with a reason), or is to be done (an event, moontide.delete), fails the
 * job. */
int returned_by_ctx(lua_State *L, struct handler_job *job, int function,
                    int first, const char *rule);

/** Pushes and returns how the first member that is none of `names` is called,
 * with the one that may be meant; NULL, and nothing is pushed, when the table
 * at the index has no other. */
const char *returned_stranger(lua_State *L, int index,
                              const char *const *names);

/** Whether the value at the index is what moontide.event gives. */
bool returned_is_event(lua_State *L, int index);

#endif
