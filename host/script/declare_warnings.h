/*
 * Declare warnings -- what in the functions of declarations is likely a
 * mistake, though nothing forbids it before it runs: a value kept in a local of
 * the file, a variable that nobody declares, in the modules, too. Called by
 * script.c when all is loaded.
 */
#ifndef HOST_SCRIPT_DECLARE_WARNINGS_H
#define HOST_SCRIPT_DECLARE_WARNINGS_H

#include "script/declare.h"

/** Fills set->warnings; the rest of the set is complete, and so are the sources
 * of the state. Raises only when the stack cannot grow. */
void declare_warnings_find(lua_State *L, struct declare_set *set);

#endif
