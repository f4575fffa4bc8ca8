/*
 * Handler keys -- the call of a declaration's key function: what it may give,
 * each key once and in order. Part of script/handler_call.c's interface.
 */
#ifndef HOST_SCRIPT_HANDLER_KEYS_H
#define HOST_SCRIPT_HANDLER_KEYS_H

#include "script/handler_run.h"

/** The entry function ENTRY_KEYS: tells the keys to job->emit. */
int handler_keys_enter(lua_State *L);

/** Whether the call's key is among those of what the message is now (a part);
 * without a key function it is. From protected code; a wrong key fails the
 * job. */
bool handler_keys_match(lua_State *L, struct handler_job *job);

/** As handler_ops.keys. */
enum status handler_keys_tell(void *self, const struct handler_call *call,
                              handler_key_fn emit, void *arg,
                              struct failure *failure) MUST_CHECK;

#endif
