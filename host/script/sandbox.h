/*
 * Sandbox -- the globals that scripts see: an allow-list of the Lua library
 * with the parts replaced that would hang, leak or differ from run to run.
 * It protects from accidents; it is no wall against hostile code.
 */
#ifndef HOST_SCRIPT_SANDBOX_H
#define HOST_SCRIPT_SANDBOX_H

#include "script/state.h"

/** CONFIG: a name that cannot be granted, with the nearest that can. */
enum status sandbox_check_grants(const char *const *grants,
                                 struct diag *diag) MUST_CHECK;

/** Opens the libraries and makes the locked environment the globals of a
 * fresh state; `jit`: the compiler, too, which is on then. From protected
 * code. */
void sandbox_open(lua_State *L, const char *const *grants, bool jit);

#endif
