/*
 * Declare steps -- the steps of an orchestrated saga, from what
 * lua/moontide/declare_steps.lua has checked.
 */
#ifndef HOST_SCRIPT_DECLARE_STEPS_H
#define HOST_SCRIPT_DECLARE_STEPS_H

#include "script/declare_build.h"

/** Fills the steps of the saga at hand, none if it declares none. */
void declare_steps(const struct declare_build *b);

#endif
