/*
 * Ctx SQL -- the methods of ctx that reach the database.
 */
#ifndef HOST_SCRIPT_CTX_SQL_H
#define HOST_SCRIPT_CTX_SQL_H

#include <lua.h>

/* C functions with the struct handler_code as their first upvalue. */

int ctx_sql_query(lua_State *L);   /* ctx:query(sql, ...) -> rows */
int ctx_sql_execute(lua_State *L); /* ctx:execute(sql, ...) */
int ctx_sql_update(lua_State *L);  /* ctx:update(sql, ...) -> rows touched */
int ctx_sql_upsert(lua_State *L);  /* ctx:upsert(table, keys, values) */
int ctx_sql_try(lua_State *L);     /* ctx:try(fn) -> true, ... | false, why */

#endif
