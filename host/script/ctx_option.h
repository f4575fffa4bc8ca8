/*
 * Ctx option -- what the methods of ctx that cause effects share: reading
 * their options and the values they take. All raise as `ctx:METHOD: what`.
 */
#ifndef HOST_SCRIPT_CTX_OPTION_H
#define HOST_SCRIPT_CTX_OPTION_H

#include "model/effects.h"
#include "script/handler_code.h"

/** The effects of the running call; raises where it may cause none. */
struct effects *ctx_option_effects(struct handler_code *code, lua_State *L,
                                   const char *method);

/** Makes the options at `index` a table, and refuses those that are not among
 * `names` (NULL-terminated). */
void ctx_option_check(lua_State *L, int index, const char *method,
                      const char *const *names);

/** An option that is text, NULL data without; pushes one value, which keeps it
 * alive. */
struct text ctx_option_text(lua_State *L, int options, const char *name);

/** An option that is a UUID; false without. */
bool ctx_option_uuid(lua_State *L, int options, const char *method,
                     const char *name, struct uuid *id);

/** The JSON of the value at the index, as a string on the stack: what raises
 * from here on leaves nothing behind. `root` names it in errors. */
struct text ctx_option_json(struct handler_code *code, lua_State *L, int index,
                            const char *method, const char *root);

#endif
