#include "run/core_read.h"

#include "base/json.h"
#include "db/db.h"
#include "db/placeholder.h"
#include "model/read_model.h"
#include "run/core_module.h"
#include "run/fold.h"
#include "run/test_host.h"

#include <lauxlib.h>

#define PARAMS_MAX 64

/* --- read models ---------------------------------------------------------- */

static enum status take_read_model(void *arg, struct text key,
                                   struct text state, struct diag *diag)
{
    struct buffer *out = arg;

    (void)diag;
    buffer_append_string(out, out->len > 1 ? ",{\"key\":" : "{\"key\":");
    json_write_string(out, key);
    buffer_append_string(out, ",\"state\":");
    buffer_append_text(out, state);
    buffer_append_char(out, '}');
    return STATUS_OK;
}

/* host:read(projection[, key]) -> JSON: [{"key":...,"state":...}] */
static int method_read(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const char *name = luaL_checkstring(L, 2);
    struct read_model_request request = {
        .key = luaL_optstring(L, 3, NULL),
    };
    struct buffer *out = core_module_scratch(L);
    struct diag diag;
    enum status status;

    buffer_append_char(out, '[');
    status = test_host_declaration(host, name, &request.declaration, &diag);
    if (status == STATUS_OK)
        status = read_model_read(host->app.db, &request, take_read_model, out,
                                 &diag);
    buffer_append_char(out, ']');
    return core_module_answer(L, status, out, &diag);
}

/* core.fold(folder, scripts, projection, events) -> JSON as host:read. Events
 * without id or time have zeros: two folds must see the same. */
int core_read_fold(lua_State *L)
{
    const struct clock clock = {.offset_us = 0};
    const struct log log = {.out = NULL};
    const struct script_options options = core_module_options(L, &clock, &log);
    const char *projection = luaL_checkstring(L, 3);
    struct append_event *events;
    struct buffer *out;
    struct diag diag;
    enum status status;
    size_t count;

    luaL_checktype(L, 4, LUA_TTABLE);
    count = lua_objlen(L, 4);
    events = lua_newuserdata(L, count * sizeof(*events) + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 4, (int)i + 1);
        luaL_argcheck(L, lua_istable(L, -1), 4, "an event must be a table");
        core_module_event(L, &events[i]);
        lua_pop(L, 1);
    }
    out = core_module_scratch(L);
    buffer_append_char(out, '[');
    status = fold_messages(&options, projection, events, count, take_read_model,
                           out, &diag);
    buffer_append_char(out, ']');
    return core_module_answer(L, status, out, &diag);
}

/* --- rows ----------------------------------------------------------------- */

static void write_cell(struct buffer *out, struct db_rows *rows, size_t column)
{
    char time[CLOCK_TEXT_SIZE], id[UUID_TEXT_LEN + 1];
    struct uuid uuid;

    switch (db_column_type(rows, column)) {
    case DB_TIMESTAMP:
        clock_format(db_get_timestamp(rows, column), time);
        json_write_string(out, text_of(time));
        return;
    case DB_UUID:
        uuid = db_get_uuid(rows, column);
        uuid_format(&uuid, id);
        json_write_string(out, text_of(id));
        return;
    case DB_INT64:
        buffer_printf(out, "%lld", (long long)db_get_int64(rows, column));
        return;
    case DB_DOUBLE:
        buffer_printf(out, "%.17g", db_get_double(rows, column));
        return;
    case DB_BOOL:
        buffer_append_string(out, db_get_bool(rows, column) ? "true" : "false");
        return;
    default:
        json_write_string(out, db_get_text(rows, column));
        return;
    }
}

static void write_row(struct buffer *out, struct db_rows *rows)
{
    bool first = true;

    buffer_append_string(out, out->len > 1 ? ",{" : "{");
    for (size_t i = 0; i < db_columns(rows); i++) {
        if (db_is_null(rows, i))
            continue; /* NULL is nil */
        json_write_key(out, &first, db_column_name(rows, i));
        write_cell(out, rows, i);
    }
    buffer_append_char(out, '}');
}

static struct db_value check_param(lua_State *L, int arg)
{
    struct text text;
    lua_Number number;

    switch (lua_type(L, arg)) {
    case LUA_TNIL:
    case LUA_TLIGHTUSERDATA:
        return db_null();
    case LUA_TBOOLEAN:
        return db_boolean(lua_toboolean(L, arg));
    case LUA_TNUMBER:
        number = lua_tonumber(L, arg);
        return number == (lua_Number)(int64_t)number
                   ? db_integer((int64_t)number)
                   : db_number(number);
    default:
        text.data = luaL_checklstring(L, arg, &text.len);
        return db_text_value(text);
    }
}

static enum status run_query(struct test_host *host, struct text sql,
                             const struct db_value *params, size_t nparams,
                             struct buffer *rewritten, struct buffer *out,
                             struct diag *diag)
{
    struct db *db = host->app.db;
    struct db_sql statement;
    struct db_rows *rows;
    size_t wanted;
    bool more = false;
    enum status status = placeholder_rewrite(sql, db_dialect(db), rewritten,
                                             &wanted, diag);

    if (status != STATUS_OK)
        return status;
    if (wanted != nparams)
        return diag_set(diag, STATUS_INVALID,
                        "the statement has %zu placeholders, %zu values were "
                        "given",
                        wanted, nparams);
    statement = db_sql_make(buffer_text(rewritten), DB_PERSON);
    status = db_query(db, &statement, params, nparams, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more)
        write_row(out, rows);
    db_rows_close(rows);
    return status;
}

/* host:query(sql, ...) -> JSON: list of rows */
static int method_query(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    struct text sql;
    int nparams = lua_gettop(L) - 2;
    struct db_value params[PARAMS_MAX];
    struct buffer *rewritten, *out;
    struct diag diag;
    enum status status;

    sql.data = luaL_checklstring(L, 2, &sql.len);
    luaL_argcheck(L, nparams <= PARAMS_MAX, 2, "too many values");
    for (int i = 0; i < nparams; i++)
        params[i] = check_param(L, 3 + i);
    rewritten = core_module_scratch(L);
    out = core_module_scratch(L);
    buffer_append_char(out, '[');
    status = run_query(host, sql, params, (size_t)nparams, rewritten, out,
                       &diag);
    buffer_append_char(out, ']');
    return core_module_answer(L, status, out, &diag);
}

static const luaL_Reg methods[] = {
    {"read", method_read},
    {"query", method_query},
    {NULL, NULL},
};

void core_read_register(lua_State *L)
{
    luaL_register(L, NULL, methods);
}
