#include "script/ctx_effect.h"

#include "base/hash.h"
#include "model/effects.h"
#include "model/handler_sql.h"
#include "script/ctx_internal.h"
#include "script/ctx_option.h"
#include "script/int64.h"
#include "script/json_codec.h"
#include "script/json_tags.h"
#include "script/limits.h"
#include "script/lua_call.h"
#include "script/value.h"

#include <stdio.h>

/* --- emit ---------------------------------------------------------------- */

static void push_correlation(struct handler_code *code, lua_State *L)
{
    struct buffer *scratch = &code->scratch;

    buffer_clear(scratch);
    outgoing_correlation(code->call->message, scratch);
    lua_pushlstring(L, scratch->data, scratch->len);
}

/* Sets a member that the script has not given. */
static void complete(lua_State *L, int metadata, const char *name)
{
    lua_getfield(L, metadata, name);
    if (lua_isnil(L, -1)) {
        lua_pushvalue(L, -2);
        lua_setfield(L, metadata, name);
    }
    lua_pop(L, 2);
}

/* The saga that causes it. */
static void complete_saga(const struct handler_call *call, lua_State *L,
                          int metadata)
{
    if (call->declaration->kind != DECLARATION_SAGA)
        return;
    lua_pushlstring(L, call->key.data, call->key.len);
    complete(L, metadata, "saga_id");
    lua_pushstring(L, call->declaration->name);
    complete(L, metadata, "saga_type");
}

/* Pushes the metadata: a copy of what was given, and where the event comes
 * from. */
static void push_metadata(struct handler_code *code, lua_State *L, int options,
                          const char *method)
{
    char id[UUID_TEXT_LEN + 1];
    int given, copy;

    uuid_format(&code->call->message->id, id);
    lua_getfield(L, options, "metadata");
    given = lua_gettop(L);
    if (!lua_isnil(L, given) &&
        (!lua_istable(L, given) || json_tags_is_list(L, given))) {
        char shown[128];

        value_describe(L, given, shown, sizeof(shown));
        if (lua_istable(L, given))
            (void)snprintf(shown, sizeof(shown), "a list");
        luaL_error(L, "ctx:%s: metadata must be a table by name, not %s",
                   method, shown);
    }
    lua_newtable(L);
    copy = lua_gettop(L);
    for (lua_pushnil(L); lua_istable(L, given) && lua_next(L, given) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, copy);
    }
    lua_settop(L, copy);
    push_correlation(code, L);
    complete(L, copy, "correlation_id");
    lua_pushstring(L, id);
    complete(L, copy, "causation_id");
    complete_saga(code->call, L, copy);
}

void ctx_effect_push_metadata(struct handler_code *code, lua_State *L,
                              const char *method)
{
    lua_newtable(L);
    push_metadata(code, L, lua_gettop(L), method);
    lua_remove(L, -2);
}

static void take_id(lua_State *L, struct append_event *event)
{
    struct text id = ctx_option_text(L, 4, "id");

    event->has_id = id.data != NULL;
    if (event->has_id && !uuid_parse(id, &event->id))
        luaL_error(L, "ctx:emit: id is not a UUID: \"%s\"", id.data);
}

static void take_time(lua_State *L, struct append_event *event)
{
    struct text time = ctx_option_text(L, 4, "occurred_at");
    struct diag diag;

    event->has_occurred_at = time.data != NULL;
    if (event->has_occurred_at &&
        clock_parse(time, &event->occurred_at, &diag) != STATUS_OK)
        luaL_error(L, "ctx:emit: occurred_at: %s", diag.message);
}

static void take_revision(const struct handler_code *code, lua_State *L,
                          struct append_event *event)
{
    struct diag diag;

    lua_getfield(L, 4, "revision");
    event->has_revision = !lua_isnil(L, -1);
    if (!event->has_revision)
        return;
    if (!value_revision(L, -1, &event->revision))
        luaL_error(L, "ctx:emit: revision must be a whole number from 0");
    if (event_types_admit(&code->set->event_types, event->type, event->revision,
                          &diag) != STATUS_OK)
        luaL_error(L, "ctx:emit: this is %s", diag.message);
}

/* ctx:emit(type, payload[, options]) */
int ctx_effect_emit(lua_State *L)
{
    static const char *const names[] = {"key",      "id",          "metadata",
                                        "revision", "occurred_at", NULL};
    struct handler_code *code = ctx_check(L, "emit");
    struct effects *effects = ctx_option_effects(code, L, "emit");
    struct append_event event = {.expect = APPEND_ANY};
    struct diag diag;

    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "ctx:emit takes the event's type first, not a %s",
                          luaL_typename(L, 2));
    lua_settop(L, 4);
    luaL_checkstack(L, 24, NULL);
    ctx_option_check(L, 4, "emit", names);
    if (lua_isnil(L, 3)) {
        lua_newtable(L);
        lua_replace(L, 3);
    }
    event.type.data = lua_tolstring(L, 2, &event.type.len);
    event.key = ctx_option_text(L, 4, "key");
    take_id(L, &event);
    take_time(L, &event);
    take_revision(code, L, &event);
    event.payload = ctx_option_json(code, L, 3, "emit", "payload");
    push_metadata(code, L, 4, "emit");
    event.metadata = ctx_option_json(code, L, lua_gettop(L), "emit",
                                     "metadata");
    if (effects_emit(effects, &event, &diag) != STATUS_OK)
        return luaL_error(L, "ctx:emit: %s", diag.message);
    return 0;
}

/* --- dispatch ------------------------------------------------------------- */

static struct text check_text(lua_State *L, int index, const char *what)
{
    struct text text;

    if (lua_type(L, index) != LUA_TSTRING)
        luaL_error(L,
                   "ctx:dispatch takes aggregate, id, command, arguments and "
                   "options: the %s must be text, not a %s",
                   what, luaL_typename(L, index));
    text.data = lua_tolstring(L, index, &text.len);
    return text;
}

static void set_text(lua_State *L, const char *name, struct text text)
{
    lua_pushlstring(L, text.data, text.len);
    lua_setfield(L, -2, name);
}

static void set_json(lua_State *L, const char *name, struct text json)
{
    struct diag diag;

    if (json.data == NULL)
        return;
    if (json_codec_decode(L, json, name, &diag) != STATUS_OK)
        luaL_error(L, "ctx:dispatch: %s", diag.message);
    lua_setfield(L, -2, name);
}

static void push_event(lua_State *L, const struct aggregate_event *event)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(&event->id, id);
    lua_createtable(L, 0, 9);
    set_text(L, "id", text_of(id));
    set_text(L, "aggregate_type", event->aggregate_type);
    set_text(L, "aggregate_id", event->aggregate_id);
    set_text(L, "type", event->type);
    set_json(L, "payload", event->payload);
    set_json(L, "metadata", event->metadata);
    lua_pushinteger(L, event->revision);
    lua_setfield(L, -2, "revision");
    int64_push(L, event->sequence);
    lua_setfield(L, -2, "sequence");
    int64_push(L, event->position);
    lua_setfield(L, -2, "position");
}

static int push_outcome(lua_State *L, const struct aggregate_outcome *outcome)
{
    if (outcome->rejected) {
        lua_pushnil(L);
        lua_pushlstring(L, outcome->reason.data, outcome->reason.len);
        if (outcome->details.data == NULL)
            return 2;
        lua_newtable(L);
        set_json(L, "details", outcome->details);
        lua_getfield(L, -1, "details");
        lua_remove(L, -2);
        return 3;
    }
    lua_createtable(L, (int)outcome->nevents, 0);
    json_tags_push_array(L);
    lua_setmetatable(L, -2);
    for (size_t i = 0; i < outcome->nevents; i++) {
        push_event(L, &outcome->events[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* The failure of the call is to be of the command's kind. */
static void keep_fault(lua_State *L, struct handler_fault *fault,
                       const struct failure *failure)
{
    const char *class = failure != NULL ? failure->reason : "error:";
    size_t len = strcspn(class, ":");

    if (fault->where[0] != '\0' || len >= sizeof(fault->class))
        return;
    lua_call_where(L, fault->where);
    memcpy(fault->class, class, len);
    fault->class[len] = '\0';
    fault->permanent = failure != NULL && failure->permanent;
    fault->waits = failure != NULL && failure->waits;
}

/* What the command has written before it failed must not stay, whatever the
 * script does about the error. */
static int raise_failed(struct handler_code *code, lua_State *L,
                        enum status status, const struct failure *failure,
                        struct diag *diag)
{
    if (status == STATUS_FAILED) {
        keep_fault(L, &code->fault, failure);
        diag_set(diag, STATUS_PERMANENT, "ctx:dispatch: %s", failure->reason);
    } else if (status == STATUS_REFUSED || status == STATUS_INVALID ||
               status == STATUS_USAGE) {
        keep_fault(L, &code->fault, NULL);
        diag->status = STATUS_PERMANENT;
    } else if (code->fault.where[0] == '\0') {
        lua_call_where(L, code->fault.where);
    }
    return lua_call_raise_host(L, diag);
}

/* ctx:dispatch(aggregate, id, command, args[, options]) -> events, or nil,
 * reason[, details] */
int ctx_effect_dispatch(lua_State *L)
{
    static const char *const names[] = {"metadata", "command_id", NULL};
    struct handler_code *code = ctx_check(L, "dispatch");
    struct effects *effects = ctx_option_effects(code, L, "dispatch");
    struct handler_sql *sql = code->call->sql;
    struct aggregate_command command = {.has_cause = true};
    struct aggregate_outcome outcome;
    struct failure failure = {.permanent = false};
    struct text id;
    struct diag diag;
    enum status status;

    lua_settop(L, 6);
    luaL_checkstack(L, 24, NULL);
    command.aggregate = check_text(L, 2, "aggregate");
    command.id = check_text(L, 3, "id");
    command.name = check_text(L, 4, "command");
    ctx_option_check(L, 6, "dispatch", names);
    if (!lua_isnil(L, 5))
        command.args = ctx_option_json(code, L, 5, "dispatch", "args");
    id = ctx_option_text(L, 6, "command_id");
    command.has_command_id = id.data != NULL;
    if (command.has_command_id && !uuid_parse(id, &command.command_id))
        return luaL_error(L, "ctx:dispatch: command_id is not a UUID");
    command.cause = code->call->message->id;
    push_metadata(code, L, 6, "dispatch");
    command.metadata = ctx_option_json(code, L, lua_gettop(L), "dispatch",
                                       "metadata");
    limits_check(L);
    status = handler_sql_other(sql, &diag);
    if (status == STATUS_OK)
        status = handler_sql_other_done(
            sql,
            effects_dispatch(effects, &command, &outcome, &failure, &diag));
    limits_spent(L);
    if (status != STATUS_OK)
        return raise_failed(code, L, status, &failure, &diag);
    return push_outcome(L, &outcome);
}

/* --- read ---------------------------------------------------------------- */

static const struct declaration *
find_projection(const struct handler_code *code, lua_State *L, struct text name)
{
    for (size_t i = 0; i < code->set->count; i++) {
        const struct declaration *d = &code->set->items[i];

        if (!text_equal(text_of(d->name), name))
            continue;
        if (d->kind != DECLARATION_PROJECTION)
            luaL_error(L,
                       "ctx:read: '%s' is a %s, which keeps no read models; "
                       "use ctx:query",
                       d->name, declaration_kind_word(d->kind));
        return d;
    }
    luaL_error(L, "ctx:read: no projection is called '%s'", value_name(L, 2));
    return NULL;
}

/* The state in the first column of the open result, or nil. */
static void push_state(struct handler_code *code, lua_State *L,
                       struct diag *diag)
{
    bool more = false;

    if (db_next(code->rows, &more, diag) != STATUS_OK)
        lua_call_raise_host(L, diag);
    if (!more) {
        lua_pushnil(L);
        return;
    }
    if (json_codec_decode(L, db_get_text(code->rows, 0), "state", diag) !=
        STATUS_OK)
        luaL_error(L, "ctx:read: %s", diag->message);
}

/* ctx:read(projection, key) -> state or nil: as it is committed, or as this
 * transaction has it */
int ctx_effect_read(lua_State *L)
{
    struct handler_code *code = ctx_check(L, "read");
    const struct declaration *d;
    const struct sql_text *statement;
    struct db_value key;
    struct text name, sql, text;
    struct diag diag;

    ctx_option_effects(code, L, "read");
    name.data = luaL_checklstring(L, 2, &name.len);
    text.data = luaL_checklstring(L, 3, &text.len);
    d = find_projection(code, L, name);
    if (!text_utf8_valid(text) || memchr(text.data, '\0', text.len) != NULL)
        return luaL_error(L, "ctx:read: the key is not valid UTF-8 without NUL "
                             "characters");
    buffer_clear(&code->scratch);
    buffer_append_string(&code->scratch, "SELECT state FROM ");
    handler_sql_print_name(code->call->sql, d->table, &code->scratch);
    buffer_append_string(&code->scratch, " WHERE read_model_id = ?");
    lua_pushlstring(L, code->scratch.data, code->scratch.len);
    sql.data = lua_tolstring(L, -1, &sql.len);
    if (sql_text_find(&code->texts, sql, code->set->dialect, &statement,
                      &diag) != STATUS_OK)
        return luaL_error(L, "ctx:read: %s", diag.message);
    key = db_text_value(text);
    limits_check(L);
    handler_sql_deadline(code->call->sql, limits_of(L)->deadline);
    if (handler_sql_query(code->call->sql, &statement->sql, &key, 1,
                          &code->rows, &diag) != STATUS_OK) {
        limits_spent(L);
        return lua_call_raise_host(L, &diag);
    }
    push_state(code, L, &diag);
    limits_spent(L);
    handler_code_close_rows(code);
    return 1;
}

/* --- delivery id --------------------------------------------------------- */

/* Spreads the bits of a hash over all of it. */
static uint64_t spread(uint64_t h)
{
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* A version 8 UUID of the names, whose lengths come first so that no two run
 * into each other. */
static struct uuid id_of(struct buffer *name)
{
    struct uuid id;

    for (int half = 0; half < 2; half++) {
        uint64_t bits;

        buffer_append_char(name, (char)('0' + half));
        bits = spread(hash_fnv1a64(buffer_text(name)));
        for (int i = 0; i < 8; i++)
            id.bytes[8 * half + i] = (uint8_t)(bits >> 8 * (7 - i));
    }
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x80);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

void ctx_effect_push_delivery_id(struct handler_code *code, lua_State *L)
{
    const struct handler_call *call = code->call;
    const struct declaration *d = call->declaration;
    struct buffer *name = &code->scratch;
    char text[UUID_TEXT_LEN + 1];
    struct uuid id;

    if (call->effects == NULL) {
        lua_pushnil(L);
        return;
    }
    uuid_format(&call->message->id, text);
    buffer_clear(name);
    buffer_printf(name, "%s %zu %s %d %s ", declaration_consumer_type(d),
                  strlen(d->name), d->name, code->part, text);
    if (d->own_key)
        buffer_append_text(name, call->key);
    id = id_of(name);
    uuid_format(&id, text);
    lua_pushlstring(L, text, UUID_TEXT_LEN);
}
