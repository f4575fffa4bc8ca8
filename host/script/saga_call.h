/*
 * Saga call -- runs the functions of a saga's declaration: what they see as
 * `saga` (id, state, deadline, cancel, complete), and the state before and
 * after. model/handler.h says what the model asks for.
 */
#ifndef HOST_SCRIPT_SAGA_CALL_H
#define HOST_SCRIPT_SAGA_CALL_H

#include "script/handler_run.h"

/** As handler_ops.saga_parts and handler_ops.saga. */
enum status saga_call_parts(void *self, const struct handler_call *call,
                            struct arena *arena, struct handler_part **parts,
                            size_t *count, struct failure *failure) MUST_CHECK;
enum status saga_call_run(void *self, const struct handler_call *call,
                          size_t slot, struct handler_saga *saga,
                          struct failure *failure,
                          struct diag *diag) MUST_CHECK;

/** Entry functions (script/handler_run.h). */
int saga_call_enter_parts(lua_State *L);
int saga_call_enter(lua_State *L);

/** Makes the metatable of sagas; from protected code. */
void saga_call_register(struct handler_code *code, lua_State *L);

#endif
