/*
 * Declare event type -- copies the declared event types to C, and finds for a
 * consumer which stored types it has to read. Protected code only.
 */
#ifndef HOST_SCRIPT_DECLARE_EVENT_TYPE_H
#define HOST_SCRIPT_DECLARE_EVENT_TYPE_H

#include "script/declare_build.h"

/** Fills set->event_types and set->steps from the list at the stack's index,
 * which declare.lua has checked and sorted by name. */
void declare_event_types(struct declare_build *b, int list);

/** Fills the declaration's stored types; its types are there. */
void declare_stored_types(const struct declare_build *b);

#endif
