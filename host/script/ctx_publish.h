/*
 * Ctx publish -- ctx:publish: a message for a declared publisher, staged with
 * the other effects of the call.
 */
#ifndef HOST_SCRIPT_CTX_PUBLISH_H
#define HOST_SCRIPT_CTX_PUBLISH_H

#include <lua.h>

/** ctx:publish(publisher, type, payload[, options]) */
int ctx_publish(lua_State *L);

#endif
