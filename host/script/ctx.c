#include "script/ctx.h"

#include "base/clock.h"
#include "model/effects.h"
#include "script/ctx_effect.h"
#include "script/ctx_internal.h"
#include "script/ctx_publish.h"
#include "script/ctx_sql.h"
#include "script/int64.h"
#include "script/json_codec.h"
#include "script/value.h"

enum field {
    FIELD_UNKNOWN,
    CTX_KEY,
    CTX_PARTITION,
    CTX_ATTEMPT,
    CTX_REPLAYING,
    CTX_DELIVERY_ID,
    CTX_DIALECT,
    CTX_COUNT
};

static const char *const FIELDS[CTX_COUNT] = {
    [FIELD_UNKNOWN] = "",          [CTX_KEY] = "key",
    [CTX_PARTITION] = "partition", [CTX_ATTEMPT] = "attempt",
    [CTX_REPLAYING] = "replaying", [CTX_DELIVERY_ID] = "delivery_id",
    [CTX_DIALECT] = "dialect",
};

/* Everything that may follow ctx, for suggestions. */
static const char *const KNOWN[] = {
    "key",   "partition", "attempt", "replaying", "delivery_id", "dialect",
    "query", "execute",   "update",  "upsert",    "try",         "now",
    "log",   "emit",      "read",    "dispatch",  "publish",     NULL,
};

/* Upvalues of ctx_index. */
enum { UP_CODE = 1, UP_METHODS, UP_FIELDS };

struct handler_code *ctx_check(lua_State *L, const char *what)
{
    struct handler_code *code = lua_touserdata(L, lua_upvalueindex(UP_CODE));

    if (lua_type(L, 1) != LUA_TTABLE)
        luaL_error(L, "call it with a colon: ctx:%s(...)", what);
    if (code->call == NULL || lua_topointer(L, 1) != code->context)
        luaL_error(L, "ctx is only usable inside its handler");
    return code;
}

static void push_field(struct handler_code *code, lua_State *L,
                       enum field field)
{
    const struct handler_call *call = code->call;

    switch (field) {
    case CTX_KEY:
        if (call->key.data == NULL)
            lua_pushnil(L);
        else
            lua_pushlstring(L, call->key.data, call->key.len);
        return;
    case CTX_PARTITION:
        lua_pushinteger(L, call->partition);
        return;
    case CTX_ATTEMPT:
        lua_pushinteger(L, call->attempt);
        return;
    case CTX_REPLAYING:
        lua_pushboolean(L, call->replaying);
        return;
    case CTX_DIALECT:
        lua_pushstring(L, code->set->dialect);
        return;
    case CTX_DELIVERY_ID:
        ctx_effect_push_delivery_id(code, L);
        return;
    default:
        lua_pushnil(L);
    }
}

static int unknown_field(lua_State *L)
{
    const char *key = value_name(L, 2);
    const char *near;

    near = text_nearest(key, KNOWN);
    if (near != NULL)
        return luaL_error(L, "ctx has no \"%s\"; did you mean \"%s\"?", key,
                          near);
    return luaL_error(L, "ctx has no \"%s\"", key);
}

/* __index(ctx, key) */
static int ctx_index(lua_State *L)
{
    enum field field;

    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(UP_METHODS));
    if (!lua_isnil(L, -1))
        return 1;
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(UP_FIELDS));
    field = (enum field)lua_tointeger(L, -1);
    if (field == FIELD_UNKNOWN)
        return unknown_field(L);
    push_field(ctx_check(L, "now"), L, field);
    return 1;
}

static int ctx_newindex(lua_State *L)
{
    return luaL_error(L, "ctx cannot be changed; keep values in the state");
}

/* ctx:now() -> RFC 3339: projections live in the time of their events, and what
 * causes effects in its own */
static int ctx_now(lua_State *L)
{
    const struct handler_code *code = ctx_check(L, "now");
    char time[CLOCK_TEXT_SIZE];

    clock_format(code->call->effects != NULL ? effects_now(code->call->effects)
                                             : code->call->message->occurred_at,
                 time);
    lua_pushstring(L, time);
    return 1;
}

/* --- ctx.log ---------------------------------------------------------------
 */

#define LOG_FIELDS_MAX 32

static void append_field(struct handler_code *code, lua_State *L, int key,
                         int table)
{
    struct buffer *out = &code->scratch;
    struct text name, text;
    struct diag diag;
    size_t from;

    name.data = lua_tolstring(L, key, &name.len);
    lua_pushvalue(L, key);
    lua_rawget(L, table);
    if (lua_type(L, -1) == LUA_TSTRING) {
        text.data = lua_tolstring(L, -1, &text.len);
        log_field(out, name.data, text);
    } else {
        /* its JSON, made behind what is there and moved into place */
        from = out->len;
        if (json_codec_encode(L, -1, name.data, out, &diag) == STATUS_OK)
            lua_pushlstring(L, out->data + from, out->len - from);
        else
            lua_pushstring(L, diag.message);
        if (out->data != NULL) {
            out->len = from;
            out->data[from] = '\0';
        }
        text.data = lua_tolstring(L, -1, &text.len);
        log_field(out, name.data, text);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Puts the key at the top, kept there for lua_next, in its place among the
 * sorted ones from `first` to `last`, too. */
static void insert_key(lua_State *L, int first, int last)
{
    const char *key = lua_tostring(L, -1);
    int at = first;

    while (at <= last && strcmp(lua_tostring(L, at), key) <= 0)
        at++;
    lua_pushvalue(L, -1);
    lua_insert(L, at);
}

/* Fills the scratch buffer with the fields of the table at `table`, sorted. */
static void append_fields(struct handler_code *code, lua_State *L, int table)
{
    int first = lua_gettop(L) + 1;
    int last = first - 1;

    luaL_checkstack(L, LOG_FIELDS_MAX + 8, NULL);
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING ||
            last - first + 1 >= LOG_FIELDS_MAX)
            luaL_error(L, "ctx.log takes up to %d fields named by strings",
                       LOG_FIELDS_MAX);
        insert_key(L, first, last);
        last++;
    }
    for (int key = first; key <= last; key++)
        append_field(code, L, key, table);
    lua_settop(L, first - 1);
}

static int write_log(lua_State *L, enum log_level level)
{
    struct handler_code *code = lua_touserdata(L, lua_upvalueindex(UP_CODE));
    const char *text = luaL_checkstring(L, 1);
    char id[UUID_TEXT_LEN + 1];
    struct log_about about;

    if (code->call == NULL)
        return luaL_error(L, "ctx is only usable inside its handler");
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    if (code->log == NULL || code->log->out == NULL || level < code->log->level)
        return 0;
    buffer_clear(&code->scratch);
    if (lua_istable(L, 2))
        append_fields(code, L, 2);
    uuid_format(&code->call->message->id, id);
    about = (struct log_about){
        .consumer = code->call->declaration->name,
        .topic = code->call->declaration->source,
        .position = code->call->message->position,
        .message_id = id,
        .fields = code->scratch.len > 0 ? code->scratch.data : NULL,
        .alike = text,
        .every = level < LOG_WARN, /* the script's own choice */
    };
    log_write(code->log, level, &about, "%s", text);
    return 0;
}

static int log_debug(lua_State *L)
{
    return write_log(L, LOG_DEBUG);
}

static int log_info(lua_State *L)
{
    return write_log(L, LOG_INFO);
}

static int log_warn(lua_State *L)
{
    return write_log(L, LOG_WARN);
}

static int log_error(lua_State *L)
{
    return write_log(L, LOG_ERROR);
}

/* --- making ----------------------------------------------------------------
 */

static const luaL_Reg METHODS[] = {
    {"query", ctx_sql_query},
    {"execute", ctx_sql_execute},
    {"update", ctx_sql_update},
    {"upsert", ctx_sql_upsert},
    {"try", ctx_sql_try},
    {"now", ctx_now},
    {"emit", ctx_effect_emit},
    {"read", ctx_effect_read},
    {"dispatch", ctx_effect_dispatch},
    {"publish", ctx_publish},
    {NULL, NULL},
};

static const luaL_Reg LOG_FUNCTIONS[] = {
    {"debug", log_debug}, {"info", log_info}, {"warn", log_warn},
    {"error", log_error}, {NULL, NULL},
};

static void set_functions(struct handler_code *code, lua_State *L,
                          const luaL_Reg *functions)
{
    for (; functions->name != NULL; functions++) {
        lua_pushlightuserdata(L, code);
        lua_pushcclosure(L, functions->func, 1);
        lua_setfield(L, -2, functions->name);
    }
}

void ctx_register(struct handler_code *code, lua_State *L)
{
    lua_createtable(L, 0, 3); /* the metatable */
    lua_pushlightuserdata(L, code);
    lua_newtable(L);
    set_functions(code, L, METHODS);
    lua_newtable(L);
    set_functions(code, L, LOG_FUNCTIONS);
    lua_setfield(L, -2, "log");
    lua_newtable(L);
    for (int field = FIELD_UNKNOWN + 1; field < CTX_COUNT; field++) {
        lua_pushinteger(L, field);
        lua_setfield(L, -2, FIELDS[field]);
    }
    lua_pushcclosure(L, ctx_index, 3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, ctx_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pushliteral(L, "moontide.ctx");
    lua_setfield(L, -2, "__metatable");
    for (size_t i = 0; i < code->set->total; i++) {
        lua_newtable(L);
        lua_pushvalue(L, -2);
        lua_setmetatable(L, -2);
        code->contexts[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_pop(L, 1);
}

void ctx_push_shared(struct handler_code *code, lua_State *L)
{
    lua_pushlightuserdata(L, code);
    lua_pushcclosure(L, ctx_now, 1);
    lua_setfield(L, -2, "now");
    lua_newtable(L);
    set_functions(code, L, LOG_FUNCTIONS);
    lua_setfield(L, -2, "log");
}

void ctx_push(struct handler_code *code, lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX,
                code->contexts[code->call->declaration->index]);
    code->context = lua_topointer(L, -1);
}
