/*
 * Aggregate check -- whether the aggregate that a command's event is for could
 * be read with it: one that `apply` does not take would make its stream
 * unreadable for ever, whoever's command appends it. Runs the steps of the
 * event's type, never `apply`: of another aggregate nobody knows the state.
 */
#ifndef HOST_SCRIPT_AGGREGATE_CHECK_H
#define HOST_SCRIPT_AGGREGATE_CHECK_H

#include "script/handler_run.h"

/** Says what the command does wrong when it gives the event, as text that it
 * leaves on the stack, or gives NULL. From protected code: what a step raises,
 * it raises. */
const char *aggregate_check_event(lua_State *L, const struct handler_job *job,
                                  const struct append_event *event);

#endif
