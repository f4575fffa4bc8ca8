/*
 * Saga step call -- what the steps of an orchestrated saga add to the calls of
 * its functions (script/saga_call.h): the message that a step sends, and
 * saga.history.
 */
#ifndef HOST_SCRIPT_SAGA_STEP_CALL_H
#define HOST_SCRIPT_SAGA_STEP_CALL_H

#include "script/handler_run.h"

/** Keeps what the message function at `function` returned, which lies behind
 * it; fails the job when it can be no payload. From protected code. */
void saga_step_call_take_message(lua_State *L, struct handler_job *job,
                                 int function);

/** Pushes a list of the steps so far, or nil. From protected code. */
void saga_step_call_push_history(struct handler_code *code, lua_State *L);

#endif
