/*
 * Handler keys -- the call of a declaration's key function: what it may give,
 * each key once and in order. Part of script/handler_call.c's interface.
 */
#ifndef HOST_SCRIPT_HANDLER_KEYS_H
#define HOST_SCRIPT_HANDLER_KEYS_H

#include "script/handler_run.h"

/** The entry function ENTRY_KEYS: tells the keys to job->emit. */
int handler_keys_enter(lua_State *L);

/** As handler_ops.keys. */
enum status handler_keys_tell(void *self, const struct handler_call *call,
                              handler_key_fn emit, void *arg,
                              struct failure *failure) MUST_CHECK;

#endif
