/*
 * Event -- the message as a handler sees it: a table whose fields are made
 * when they are first read. A script may keep it; what it has not read by the
 * end of its call is then an error.
 */
#ifndef HOST_SCRIPT_EVENT_H
#define HOST_SCRIPT_EVENT_H

#include "script/handler_code.h"

/** Makes the metatable of events. From protected code. */
void event_register(struct handler_code *code, lua_State *L);

/** Pushes the event of the running call. From protected code. */
void event_push(struct handler_code *code, lua_State *L);

#endif
