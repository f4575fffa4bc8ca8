#include "script/ctx_sql.h"

#include "consumer/attempt_slot.h"
#include "model/effects.h"
#include "script/ctx_internal.h"
#include "script/json_tags.h"
#include "script/lua_call.h"
#include "script/native.h"
#include "script/value.h"

#include <stdlib.h>

#define COLUMNS_MAX 64   /* of one upsert */
#define ROWS_CHECK  1024 /* rows between two looks at the clock */

/* --- errors ----------------------------------------------------------------
 */

/* A failed statement fails the call even inside pcall; one that was refused
 * before it got to the database is an ordinary error. */
static int raise(struct handler_code *code, lua_State *L,
                 const struct diag *diag)
{
    if (diag->status == STATUS_INVALID)
        return luaL_error(L, "%s", diag->message);
    if (code->fault.where[0] == '\0')
        lua_call_where(L, code->fault.where);
    return lua_call_raise_host(L, diag);
}

static struct handler_sql *check_sql(struct handler_code *code, lua_State *L,
                                     const char *method)
{
    if (code->call->sql == NULL)
        luaL_error(L, "ctx:%s needs a database, and this call has none",
                   method);
    return code->call->sql;
}

/* For statements that run at once: they may not outlive the call. Each is
 * followed by waited. */
static void watch(struct handler_code *code, lua_State *L)
{
    limits_check(L);
    handler_sql_deadline(code->call->sql, limits_of(L)->deadline);
    attempt_slot_wait(code->slot, true);
}

static void waited(struct handler_code *code, lua_State *L)
{
    attempt_slot_wait(code->slot, false);
    limits_spent(L);
}

static struct handler_sql *check_write(struct handler_code *code, lua_State *L,
                                       const char *method)
{
    struct handler_sql *sql = check_sql(code, L, method);

    if (!handler_sql_may_write(sql))
        luaL_error(L,
                   "ctx:%s is not available in a projection with state, "
                   "which may only query; use moontide.sql_projection",
                   method);
    return sql;
}

/* --- statements ------------------------------------------------------------
 */

/* Argument 2: a text, or one per dialect. */
static struct text check_text(struct handler_code *code, lua_State *L,
                              const char *method)
{
    struct text text;

    if (lua_istable(L, 2)) {
        lua_getfield(L, 2, code->set->dialect);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "ctx:%s: the table has no text for %s", method,
                       code->set->dialect);
        lua_replace(L, 2);
    } else if (lua_type(L, 2) != LUA_TSTRING) {
        luaL_error(L,
                   "ctx:%s takes SQL first, a string or a table by "
                   "dialect, not a %s",
                   method, luaL_typename(L, 2));
    }
    text.data = lua_tolstring(L, 2, &text.len);
    return text;
}

/* Arguments 2 and up: the statement and its parameters, which lie in
 * code->parameters and borrow the strings on the stack. */
static const struct sql_text *check_statement(struct handler_code *code,
                                              lua_State *L, const char *method,
                                              size_t *nparams)
{
    struct text text = check_text(code, L, method);
    size_t count = (size_t)lua_gettop(L) - 2;
    const struct sql_text *statement;
    struct diag diag;

    luaL_checkstack(L, 16, NULL);
    if (sql_text_find(&code->texts, text, code->set->dialect, &statement,
                      &diag) != STATUS_OK)
        luaL_error(L, "ctx:%s: %s", method, diag.message);
    if (count > HANDLER_CODE_PARAMETERS)
        luaL_error(L, "ctx:%s: at most %d parameters", method,
                   HANDLER_CODE_PARAMETERS);
    if (count != statement->parameters)
        luaL_error(L,
                   "ctx:%s: the statement has %d placeholders, but %d "
                   "values were given",
                   method, (int)statement->parameters, (int)count);
    for (size_t i = 0; i < count; i++)
        if (value_parameter(L, (int)i + 3, &code->parameters[i], &diag) !=
            STATUS_OK)
            luaL_error(L, "ctx:%s: parameter %d %s", method, (int)i + 1,
                       diag.message);
    *nparams = count;
    return statement;
}

/* ctx:execute(sql, ...): queued; a failure names this line */
int ctx_sql_execute(lua_State *L)
{
    struct handler_code *code = ctx_check(L, "execute");
    struct handler_sql *sql = check_write(code, L, "execute");
    char where[LIMITS_TEXT_SIZE];
    const struct sql_text *statement;
    struct diag diag;
    size_t nparams;

    statement = check_statement(code, L, "execute", &nparams);
    lua_call_where(L, where);
    if (handler_sql_execute(sql, &statement->sql, code->parameters, nparams,
                            where, &diag) != STATUS_OK)
        return raise(code, L, &diag);
    return 0;
}

/* ctx:update(sql, ...) -> number of rows */
int ctx_sql_update(lua_State *L)
{
    struct handler_code *code = ctx_check(L, "update");
    struct handler_sql *sql = check_write(code, L, "update");
    const struct sql_text *statement;
    int64_t affected = 0;
    struct diag diag;
    size_t nparams;
    enum status status;

    statement = check_statement(code, L, "update", &nparams);
    watch(code, L);
    status = handler_sql_update(sql, &statement->sql, code->parameters, nparams,
                                &affected, &diag);
    waited(code, L);
    if (status != STATUS_OK)
        return raise(code, L, &diag);
    lua_pushnumber(L, (lua_Number)affected);
    return 1;
}

/* Pushes the list of rows. The result hangs on the code while Lua may raise;
 * the names of the columns are made once, at index `names`. */
static void push_rows(struct handler_code *code, lua_State *L)
{
    size_t ncolumns = db_columns(code->rows);
    int names, list, count = 0;
    struct diag diag;
    bool more = false;

    luaL_checkstack(L, (int)ncolumns + 8, "too many columns");
    names = lua_gettop(L) + 1;
    for (size_t i = 0; i < ncolumns; i++)
        lua_pushstring(L, db_column_name(code->rows, i));
    lua_newtable(L);
    list = lua_gettop(L);
    json_tags_push_array(L);
    lua_setmetatable(L, list);
    for (;;) {
        if (db_next(code->rows, &more, &diag) != STATUS_OK) {
            waited(code, L);
            handler_code_close_rows(code);
            raise(code, L, &diag);
        }
        if (!more)
            break;
        if (++count % ROWS_CHECK == 0) {
            limits_spent(L);
            limits_check(L);
        }
        lua_createtable(L, 0, (int)ncolumns);
        for (size_t i = 0; i < ncolumns; i++) {
            lua_pushvalue(L, names + (int)i);
            value_push_column(L, code->rows, i);
            lua_rawset(L, -3);
        }
        lua_rawseti(L, list, count);
    }
    waited(code, L);
}

/* The states of a batch are written when it ends, so its rows are old ones,
 * and how old depends on where the batch began. */
static void refuse_own_table(const struct handler_code *code, lua_State *L)
{
    const char *table = code->call->declaration->table;
    struct text text;

    text.data = lua_tolstring(L, 2, &text.len);
    if (table != NULL && sql_text_names(text, table))
        luaL_error(L, "ctx:query: a projection cannot query its own table: "
                      "what its handlers changed in this batch is not there "
                      "yet");
}

/* ctx:query(sql, ...) -> list of { column = value } */
int ctx_sql_query(lua_State *L)
{
    struct handler_code *code = ctx_check(L, "query");
    struct handler_sql *sql = check_sql(code, L, "query");
    const struct sql_text *statement;
    struct diag diag;
    size_t nparams;
    enum status status;

    statement = check_statement(code, L, "query", &nparams);
    if (!handler_sql_may_write(sql))
        refuse_own_table(code, L);
    watch(code, L);
    status = handler_sql_query(sql, &statement->sql, code->parameters, nparams,
                               &code->rows, &diag);
    limits_spent(L);
    if (status != STATUS_OK) {
        waited(code, L);
        return raise(code, L, &diag);
    }
    push_rows(code, L); /* some of them may not have come yet */
    handler_code_close_rows(code);
    return 1;
}

/* --- upsert -----------------------------------------------------------------
 */

/* There are few columns, and mostly they are sorted. */
static void sort_columns(struct handler_value *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct handler_value value = values[i];
        size_t at = i;

        for (; at > 0 && strcmp(values[at - 1].column, value.column) > 0; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

/* Reads the table at `index` into `values`, sorted by column. */
static size_t check_columns(lua_State *L, int index, const char *what,
                            struct handler_value *values)
{
    size_t count = 0, len;
    struct diag diag;

    if (!lua_istable(L, index))
        luaL_error(L, "ctx:upsert: %s must be a table of columns, not a %s",
                   what, luaL_typename(L, index));
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        struct handler_value *value = &values[count];
        int at = lua_gettop(L);

        if (count++ == COLUMNS_MAX)
            luaL_error(L, "ctx:upsert: at most %d columns", COLUMNS_MAX);
        if (lua_type(L, at - 1) != LUA_TSTRING)
            luaL_error(L,
                       "ctx:upsert: %s: a column's name is a string, not "
                       "a %s",
                       what, luaL_typename(L, at - 1));
        value->column = lua_tolstring(L, at - 1, &len);
        if (strlen(value->column) != len)
            luaL_error(L, "ctx:upsert: %s: a column's name has a NUL", what);
        value->add = native_kind(L, at) == NATIVE_ADD;
        if (value->add) {
            native_push_value(L, at);
            at++;
        }
        if (value_parameter(L, at, &value->value, &diag) != STATUS_OK)
            luaL_error(L, "ctx:upsert: %s.%s %s", what, value->column,
                       diag.message);
        lua_settop(L, value->add ? at - 2 : at - 1);
    }
    sort_columns(values, count);
    return count;
}

static void upsert_where(void *arg, char *out, size_t size)
{
    char where[LIMITS_TEXT_SIZE];

    lua_call_where(arg, where);
    snprintf(out, size, "%s", where);
}

/* ctx:upsert(table, keys, values) */
int ctx_sql_upsert(lua_State *L)
{
    struct handler_code *code = ctx_check(L, "upsert");
    struct handler_sql *sql = check_write(code, L, "upsert");
    struct handler_value keys[COLUMNS_MAX], values[COLUMNS_MAX];
    const char *table;
    size_t nkeys, nvalues, len;
    struct diag diag;

    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L,
                          "ctx:upsert takes the table's name first, not a "
                          "%s",
                          luaL_typename(L, 2));
    lua_settop(L, 4);
    if (lua_isnil(L, 4)) {
        lua_newtable(L);
        lua_replace(L, 4);
    }
    luaL_checkstack(L, 8, NULL);
    table = lua_tolstring(L, 2, &len);
    if (strlen(table) != len)
        return luaL_error(L, "ctx:upsert: the table's name has a NUL");
    nkeys = check_columns(L, 3, "keys", keys);
    nvalues = check_columns(L, 4, "values", values);
    for (size_t i = 0; i < nkeys; i++)
        if (keys[i].add)
            return luaL_error(L,
                              "ctx:upsert: the key %s cannot be a "
                              "moontide.add",
                              keys[i].column);
    if (handler_sql_upsert(sql, table, keys, nkeys, values, nvalues,
                           upsert_where, L, &diag) != STATUS_OK)
        return raise(code, L, &diag);
    return 0;
}

/* --- try --------------------------------------------------------------------
 */

/* Failures of a statement end with the savepoint; a lost connection or a
 * conflict does not. */
static bool is_statement_fault(enum status status)
{
    return status == STATUS_PERMANENT || status == STATUS_UNIQUE ||
           status == STATUS_INVALID;
}

/* What the call has asked for so far and no statement writes yet. */
struct asked {
    struct effects_mark effects;
    size_t ndeadlines;
    bool completed;
};

static struct asked asked_so_far(const struct handler_code *code)
{
    struct asked asked = {.completed = false};

    if (code->call->effects != NULL)
        asked.effects = effects_mark(code->call->effects);
    if (code->saga != NULL) {
        asked.ndeadlines = code->saga->ndeadlines;
        asked.completed = code->saga->completed;
    }
    return asked;
}

static void back_to(const struct handler_code *code, const struct asked *asked)
{
    if (code->call->effects != NULL)
        effects_undo_to(code->call->effects, asked->effects);
    if (code->saga != NULL) {
        code->saga->ndeadlines = asked->ndeadlines;
        code->saga->completed = asked->completed;
    }
}

/* Back to the savepoint; then either the script goes on, or the whole call
 * fails. */
static int give_up(struct handler_code *code, lua_State *L,
                   const struct asked *asked, const struct lua_failure *failure)
{
    char where[LIMITS_TEXT_SIZE];
    struct diag diag;
    enum status status = handler_sql_try_end(code->call->sql, false, &diag);
    bool host = failure->outcome == LUA_CALL_HOST;

    back_to(code, asked);
    if (failure->outcome == LUA_CALL_TIMEOUT ||
        failure->outcome == LUA_CALL_MEMORY ||
        (host && !is_statement_fault(failure->host.status)))
        return lua_call_raise_failure(L, failure);
    if (status != STATUS_OK)
        return raise(code, L, &diag);
    memcpy(where, code->fault.where, sizeof(where));
    code->fault = (struct handler_fault){.where = ""};
    lua_pushboolean(L, 0);
    if (host && where[0] != '\0')
        lua_pushfstring(L, "%s: %s", where, failure->message);
    else
        lua_pushstring(L, failure->message);
    return 2;
}

/* What the function queued must go out before the savepoint is kept, so that
 * its failure still is the function's: a savepoint inside sends the queue. */
static enum status send_queue(struct handler_sql *sql, struct diag *diag)
{
    enum status status = handler_sql_try(sql, diag);

    if (status == STATUS_OK)
        status = handler_sql_try_end(sql, true, diag);
    return status;
}

/* ctx:try(fn) -> true, what fn returns | false, why */
int ctx_sql_try(lua_State *L)
{
    struct handler_code *code = ctx_check(L, "try");
    struct handler_sql *sql = check_sql(code, L, "try");
    struct lua_failure failure;
    struct asked asked;
    struct diag diag;
    enum status status;

    if (lua_type(L, 2) != LUA_TFUNCTION)
        return luaL_error(L, "ctx:try takes a function, not a %s",
                          luaL_typename(L, 2));
    lua_settop(L, 2);
    watch(code, L);
    status = handler_sql_try(sql, &diag);
    waited(code, L);
    if (status != STATUS_OK)
        return raise(code, L, &diag);
    asked = asked_so_far(code);
    lua_pushboolean(L, 1);
    lua_insert(L, 2);
    if (lua_call_protected(L, 0, LUA_MULTRET, &failure) != LUA_CALL_OK) {
        handler_code_close_rows(code);
        return give_up(code, L, &asked, &failure);
    }
    status = send_queue(sql, &failure.host);
    waited(code, L);
    if (status != STATUS_OK) {
        failure.outcome = LUA_CALL_HOST;
        snprintf(failure.message, sizeof(failure.message), "%s",
                 failure.host.message);
        return give_up(code, L, &asked, &failure);
    }
    if (handler_sql_try_end(sql, true, &diag) != STATUS_OK)
        return raise(code, L, &diag);
    return lua_gettop(L) - 1;
}
