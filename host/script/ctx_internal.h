/*
 * Ctx internal -- what ctx.c and ctx_sql.c share.
 */
#ifndef HOST_SCRIPT_CTX_INTERNAL_H
#define HOST_SCRIPT_CTX_INTERNAL_H

#include "script/handler_code.h"

/** The code behind a method of ctx, whose table is argument 1; raises when
 * the call it belongs to is over. `what` is the method's name. */
struct handler_code *ctx_check(lua_State *L, const char *what);

#endif
