/*
 * Event check -- what a script's event types ask of an event that is about to
 * be appended: the revision it is stored with, and the shape of its payload.
 */
#ifndef HOST_SCRIPT_EVENT_CHECK_H
#define HOST_SCRIPT_EVENT_CHECK_H

#include "model/event_types.h"
#include "script/state.h"
#include "topic/append.h"

/**
 * Gives an event without a revision the newest one of its type, and checks the
 * payload of one that is of the newest by the declared fields; a type that is
 * not declared passes. INVALID: "payload.items[3].price: expected ..., got
 * ...". Not while a handler runs.
 */
enum status event_check(struct script_state *state,
                        const struct event_types *types,
                        struct append_event *event,
                        struct diag *diag) MUST_CHECK;

#endif
