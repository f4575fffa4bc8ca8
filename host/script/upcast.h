/*
 * Upcast -- runs the steps that lead a stored event to the newest revision of
 * its type (model/event_types.h), when a handler reads it. Protected code of
 * a running call: what a step raises fails the message, and its time counts.
 */
#ifndef HOST_SCRIPT_UPCAST_H
#define HOST_SCRIPT_UPCAST_H

#include "script/handler_code.h"

/** Replaces the payload at the top, stored with an older revision, by what the
 * steps make of it. Raises when a step splits it and the type says no `into`.
 */
void upcast_payload(struct handler_code *code, lua_State *L,
                    const struct event_type *type, int revision);

/** Replaces the payload at the top by the list of the parts that the steps make
 * of the event: { type =, revision =, payload = } each, at the newest
 * revision. An event that no step splits is its only part. */
void upcast_parts(struct handler_code *code, lua_State *L,
                  const struct event_type *type, int revision);

#endif
