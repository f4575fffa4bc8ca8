/*
 * Handler parts -- a message that its type's steps split is handed to the
 * user's functions part by part, in one protected call: parts share position
 * and id, are applied together and fail as one.
 */
#ifndef HOST_SCRIPT_HANDLER_PARTS_H
#define HOST_SCRIPT_HANDLER_PARTS_H

#include "script/handler_run.h"

/** Runs on what the job's message has become; job->type says what that is. */
typedef int (*handler_part_fn)(lua_State *L, struct handler_job *job);

/**
 * Calls fn once for the message, or once for each of its parts that the
 * declaration has a handler for and (with `by_key`) whose keys have the call's
 * among them. Ends at the first that sets job->failed.
 */
void handler_parts_each(lua_State *L, struct handler_job *job, bool by_key,
                        handler_part_fn fn);

/** Pushes the event that fn is called for. */
void handler_parts_push_event(lua_State *L, struct handler_job *job);

#endif
