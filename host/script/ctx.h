/*
 * Ctx -- the third thing a handler gets: who is asking, and SQL inside the
 * processing transaction. One object per declaration; usable only while one
 * of its handlers runs.
 *
 * Wrong use raises at the script's line. A failing database raises too, and
 * the call fails with it whatever the script does (ctx:try is the way out).
 */
#ifndef HOST_SCRIPT_CTX_H
#define HOST_SCRIPT_CTX_H

#include "script/handler_code.h"

/** Makes the ctx of every declaration. From protected code. */
void ctx_register(struct handler_code *code, lua_State *L);

/** Puts `now` and `log` of any ctx into the table at the top, which is the
 * running call's ctx. From protected code. */
void ctx_push_shared(struct handler_code *code, lua_State *L);

/** Pushes the ctx of the running call. From protected code. */
void ctx_push(struct handler_code *code, lua_State *L);

#endif
