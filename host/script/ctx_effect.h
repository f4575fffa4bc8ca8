/*
 * Ctx effect -- the methods of ctx by which listeners and sagas cause effects:
 * emit, dispatch, read. Everywhere else each of them raises.
 */
#ifndef HOST_SCRIPT_CTX_EFFECT_H
#define HOST_SCRIPT_CTX_EFFECT_H

#include "script/handler_code.h"

int ctx_effect_emit(lua_State *L);
int ctx_effect_read(lua_State *L);
int ctx_effect_dispatch(lua_State *L);

/** Pushes a table of the ids that what the running call causes carries along:
 * correlation_id and causation_id. From protected code. */
void ctx_effect_push_metadata(struct handler_code *code, lua_State *L,
                              const char *method);

/** Pushes ctx.delivery_id: the same for each attempt of a listener at one
 * message (and key, and part), and for nothing else; nil where there are no
 * effects. From protected code. */
void ctx_effect_push_delivery_id(struct handler_code *code, lua_State *L);

#endif
