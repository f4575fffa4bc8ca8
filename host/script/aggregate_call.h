/*
 * Aggregate call -- the calls of an aggregate's functions: `apply` folds an
 * event into the state, a command decides. Part of script/handler_call.c's
 * interface.
 */
#ifndef HOST_SCRIPT_AGGREGATE_CALL_H
#define HOST_SCRIPT_AGGREGATE_CALL_H

#include "script/handler_run.h"

/** Makes what the calls need. From protected code. */
void aggregate_call_register(struct handler_code *code, lua_State *L);

/** The entry functions. */
int aggregate_call_enter_apply(lua_State *L);
int aggregate_call_enter_command(lua_State *L);

/** As handler_ops.apply_event and handler_ops.command. */
enum status aggregate_call_apply(void *self, const struct handler_call *call,
                                 size_t slot,
                                 struct failure *failure) MUST_CHECK;
enum status aggregate_call_command(void *self, const struct handler_call *call,
                                   size_t slot,
                                   const struct handler_command *command,
                                   struct arena *arena,
                                   struct handler_decision *decision,
                                   struct failure *failure) MUST_CHECK;

#endif
