#include "script/aggregate_call.h"

#include "base/clock.h"
#include "script/aggregate_check.h"
#include "script/ctx.h"
#include "script/event_check.h"
#include "script/handler_parts.h"
#include "script/json_codec.h"
#include "script/json_tags.h"
#include "script/native.h"
#include "script/returned.h"
#include "script/value.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Pushes the state of the job's slot. */
static void push_state(lua_State *L, const struct handler_job *job)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_slots(job));
    lua_rawgeti(L, -1, (int)job->slot + 1);
    lua_remove(L, -2);
}

/* --- apply
 * --------------------------------------------------------------------------------
 */

/* Pushes the `apply` of what the event is. */
static void push_apply(lua_State *L, const struct handler_job *job)
{
    const struct declaration *d = job->call->declaration;
    int64_t at = map_get(&job->code->types[d->index], job->type);

    if (at == MAP_ABSENT) {
        lua_pushlstring(L, job->type.data, job->type.len);
        luaL_error(L,
                   "%s:%d: aggregate \"%s\" has no apply for \"%s\": every "
                   "type of its stream needs one",
                   d->file, d->line, d->name, lua_tostring(L, -1));
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_code(job)->handlers[at]);
}

static int apply_part(lua_State *L, struct handler_job *job)
{
    char where[LIMITS_TEXT_SIZE], shown[128];
    int first = lua_gettop(L) + 1;
    bool one;

    push_apply(L, job);
    push_state(L, job);
    handler_parts_push_event(L, job);
    lua_call(L, 2, LUA_MULTRET);
    one = returned_one(L, first, shown, sizeof(shown));
    if (one && lua_isnil(L, -1)) /* changed in place */
        return 0;
    if (one && lua_istable(L, -1) && native_kind(L, first) == NATIVE_NONE) {
        handler_run_fill(L, job);
        return 0;
    }
    if (one)
        value_describe(L, -1, shown, sizeof(shown));
    push_apply(L, job);
    handler_run_where(L, lua_gettop(L), where, sizeof(where));
    failure_set(job->failure, false, "state",
                "%s: apply returned %s; change the state and return nothing, "
                "or return another one",
                where, shown);
    return handler_run_fail(job);
}

int aggregate_call_enter_apply(lua_State *L)
{
    handler_parts_each(L, lua_touserdata(L, 1), false, apply_part);
    return 0;
}

enum status aggregate_call_apply(void *self, const struct handler_call *call,
                                 size_t slot, struct failure *failure)
{
    struct handler_job job = {
        .call = call,
        .failure = failure,
        .slot = slot,
        .needs_all = true,
    };

    return handler_run(self, ENTRY_APPLY_EVENT, &job, NULL);
}

/* --- command: its ctx
 * ------------------------------------------------------------------------------
 */

static const char *const CTX_NAMES[] = {"now", "metadata", "command_id", "log",
                                        NULL};

static int ctx_unknown(lua_State *L)
{
    const char *key = value_name(L, 2);
    const char *near = text_nearest(key, CTX_NAMES);

    if (near != NULL)
        return luaL_error(L,
                          "the ctx of a command has no \"%s\"; did you mean "
                          "\"%s\"?",
                          key, near);
    return luaL_error(L,
                      "the ctx of a command has no \"%s\": a command decides "
                      "on its aggregate alone, it has now, metadata, "
                      "command_id and log",
                      key);
}

void aggregate_call_register(struct handler_code *code, lua_State *L)
{
    lua_newtable(L);
    code->aggregate_slots = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, ctx_unknown);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "moontide.ctx");
    lua_setfield(L, -2, "__metatable");
    code->command_metatable = luaL_ref(L, LUA_REGISTRYINDEX);
}

static void push_json(lua_State *L, struct text json, const char *root)
{
    struct diag diag;

    if (json_codec_decode(L, json, root, &diag) != STATUS_OK)
        luaL_error(L, "%s", diag.message);
}

static void push_metadata(lua_State *L, const struct handler_command *command)
{
    if (command->metadata.data != NULL)
        push_json(L, command->metadata, "metadata");
    else
        lua_newtable(L);
}

static void push_ctx(lua_State *L, const struct handler_job *job)
{
    lua_createtable(L, 0, 4);
    push_metadata(L, job->command);
    lua_setfield(L, -2, "metadata");
    lua_pushlstring(L, job->command->id.data, job->command->id.len);
    lua_setfield(L, -2, "command_id");
    ctx_push_shared(job->code, L); /* now and log, as any ctx has them */
    lua_rawgeti(L, LUA_REGISTRYINDEX, job->code->command_metatable);
    lua_setmetatable(L, -2);
    job->code->context = lua_topointer(L, -1);
}

/* --- command: what it decided
 * ---------------------------------------------------------------------- */

static int bad_decision(lua_State *L, struct handler_job *job, const char *what)
{
    char where[LIMITS_TEXT_SIZE];

    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_command(job));
    handler_run_where(L, lua_gettop(L), where, sizeof(where));
    failure_set(job->failure, false, "error", "%s: command \"%.*s\" %s", where,
                TEXT_ARGS(job->command->name), what);
    return handler_run_fail(job);
}

/* The JSON of the value at the top, which is popped; NULL data when the job
 * has failed. */
static struct text take_json(lua_State *L, struct handler_job *job,
                             const char *root)
{
    struct buffer *scratch = &job->code->scratch;
    struct diag diag;

    buffer_clear(scratch);
    if (json_codec_encode(L, lua_gettop(L), root, scratch, &diag) !=
        STATUS_OK) {
        bad_decision(L, job, diag.message);
        return TEXT_NONE;
    }
    lua_pop(L, 1);
    return arena_copy(job->arena, buffer_text(scratch));
}

static struct text take_string(lua_State *L, struct handler_job *job, int event,
                               const char *key)
{
    struct text text = TEXT_NONE;

    lua_getfield(L, event, key);
    if (lua_type(L, -1) == LUA_TSTRING) {
        text.data = lua_tolstring(L, -1, &text.len);
        text = arena_copy(job->arena, text);
    } else if (!lua_isnil(L, -1)) {
        bad_decision(L, job,
                     lua_pushfstring(L,
                                     "gives an event whose %s is a %s, not a "
                                     "string",
                                     key, luaL_typename(L, -1)));
    }
    lua_settop(L, event);
    return text;
}

/* Puts the members of the table at the top into the one below; pops it. */
static void merge(lua_State *L)
{
    int from = lua_gettop(L);

    lua_pushnil(L);
    while (lua_next(L, from) != 0) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, from - 1);
    }
    lua_pop(L, 1);
}

static void set_text(lua_State *L, const char *key, struct text value,
                     bool always)
{
    lua_getfield(L, -1, key);
    if (always || lua_isnil(L, -1)) {
        lua_pushlstring(L, value.data, value.len);
        lua_setfield(L, -3, key);
    }
    lua_pop(L, 1);
}

/* The command's metadata, what the event says itself, and whence it comes. */
static struct text take_metadata(lua_State *L, struct handler_job *job,
                                 int event)
{
    const struct handler_command *command = job->command;

    push_metadata(L, command);
    set_text(L, "correlation_id", command->cause, false);
    set_text(L, "causation_id", command->cause, true);
    lua_getfield(L, event, "metadata");
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
    } else if (lua_istable(L, -1) && !json_tags_is_list(L, -1)) {
        merge(L);
    } else {
        char shown[128];

        value_describe(L, -1, shown, sizeof(shown));
        if (lua_istable(L, -1))
            (void)snprintf(shown, sizeof(shown), "a list");
        lua_settop(L, event);
        bad_decision(L, job,
                     lua_pushfstring(L,
                                     "gives an event whose metadata is %s, not "
                                     "a table by name",
                                     shown));
        return TEXT_NONE;
    }
    return take_json(L, job, "metadata");
}

static void take_revision(lua_State *L, struct handler_job *job, int event,
                          struct append_event *out)
{
    lua_getfield(L, event, "revision");
    out->has_revision = !lua_isnil(L, -1);
    if (out->has_revision && !value_revision(L, -1, &out->revision))
        bad_decision(L, job,
                     "gives an event whose revision is no whole number from "
                     "0");
    lua_settop(L, event);
}

static void take_options(lua_State *L, struct handler_job *job, int event,
                         struct append_event *out)
{
    struct text id = take_string(L, job, event, "id");
    struct text at = take_string(L, job, event, "occurred_at");
    struct diag diag;

    out->aggregate_type = take_string(L, job, event, "aggregate_type");
    out->aggregate_id = take_string(L, job, event, "aggregate_id");
    if (out->aggregate_id.data == NULL)
        out->aggregate_id = take_string(L, job, event, "key");
    take_revision(L, job, event, out);
    out->has_id = id.data != NULL;
    if (out->has_id && !uuid_parse(id, &out->id))
        bad_decision(L, job, "gives an event whose id is no UUID");
    out->has_occurred_at = at.data != NULL;
    if (out->has_occurred_at &&
        clock_parse(at, &out->occurred_at, &diag) != STATUS_OK)
        bad_decision(L, job,
                     "gives an event whose occurred_at is no RFC 3339 "
                     "time");
}

/* The event at the top of the stack, which stays. */
static void take_event(lua_State *L, struct handler_job *job,
                       struct append_event *out)
{
    int event = lua_gettop(L);
    const char *stranger, *wrong;
    struct diag diag;

    *out = (struct append_event){.revision = 0};
    luaL_checkstack(L, 16, NULL);
    if (lua_istable(L, event))
        out->type = take_string(L, job, event, "type");
    if (job->failed)
        return;
    if (out->type.data == NULL) {
        bad_decision(L, job,
                     "gives something that is no event; an event is made by "
                     "moontide.event(type, payload)");
        return;
    }
    stranger = returned_stranger(L, event, returned_event_names);
    if (stranger != NULL) {
        bad_decision(
            L, job,
            lua_pushfstring(L, "gives an event with %s, which no event has",
                            stranger));
        return;
    }
    lua_getfield(L, event, "payload");
    if (lua_isnil(L, -1)) {
        lua_newtable(L);
        lua_replace(L, -2);
    }
    out->payload = take_json(L, job, "payload");
    if (!job->failed)
        take_options(L, job, event, out);
    if (!job->failed)
        out->metadata = take_metadata(L, job, event);
    if (!job->failed &&
        event_check(job->code->state, &job->code->set->event_types, out,
                    &diag) != STATUS_OK)
        bad_decision(L, job,
                     lua_pushfstring(L,
                                     "gives an event that is not as its "
                                     "type says: %s",
                                     diag.message));
    if (job->failed)
        return;
    wrong = aggregate_check_event(L, job, out);
    if (wrong != NULL)
        bad_decision(L, job, wrong);
}

static int take_events(lua_State *L, struct handler_job *job)
{
    struct handler_decision *decision = job->decision;
    int list = lua_gettop(L);
    size_t count = lua_objlen(L, list);
    size_t members = 0;

    lua_pushnil(L);
    while (lua_next(L, list) != 0) {
        members++;
        lua_pop(L, 1);
    }
    if (members != count)
        return bad_decision(L, job,
                            "returned a table that is no list of events; "
                            "return { moontide.event(type, payload) }");
    decision->events = arena_alloc(job->arena,
                                   count * sizeof(*decision->events) + 1);
    for (size_t i = 0; i < count && !job->failed; i++) {
        lua_rawgeti(L, list, (int)i + 1);
        take_event(L, job, &decision->events[i]);
        lua_settop(L, list);
    }
    decision->count = count;
    return 0;
}

static int take_rejection(lua_State *L, struct handler_job *job)
{
    struct handler_decision *decision = job->decision;
    int box = lua_gettop(L);

    decision->rejected = true;
    native_push_value(L, box);
    decision->reason.data = lua_tolstring(L, -1, &decision->reason.len);
    decision->reason = arena_copy(job->arena, decision->reason);
    lua_rawgeti(L, box, 2);
    if (lua_isnil(L, -1))
        return 0;
    decision->details = take_json(L, job, "details");
    if ((int64_t)decision->details.len > job->code->payload)
        return bad_decision(L, job,
                            lua_pushfstring(L,
                                            "rejects with details of %d bytes, "
                                            "and limits.payload allows %d",
                                            (int)decision->details.len,
                                            (int)job->code->payload));
    return 0;
}

/* What the function gave, from `first` on: one value. A second one would be
 * dropped, and `return nil, "why"` be taken for an acceptance. */
static int take_decision(lua_State *L, struct handler_job *job, int first)
{
    char shown[128];

    for (int i = first + 1; i <= lua_gettop(L); i++)
        if (!lua_isnil(L, i))
            return bad_decision(L, job,
                                "returned several values; it returns one: "
                                "moontide.reject(reason), a list of "
                                "moontide.event(type, payload), or nothing");
    lua_settop(L, first);
    if (lua_isnil(L, -1))
        return 0;
    if (native_kind(L, lua_gettop(L)) == NATIVE_REJECT)
        return take_rejection(L, job);
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "type");
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            return take_events(L, job);
        }
        lua_pop(L, 1); /* one event, not a list */
        lua_createtable(L, 1, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
        return take_events(L, job);
    }
    value_describe(L, -1, shown, sizeof(shown));
    return bad_decision(L, job,
                        lua_pushfstring(L,
                                        "returned %s; it returns "
                                        "moontide.reject(reason), a list of "
                                        "moontide.event(type, payload), or "
                                        "nothing",
                                        shown));
}

int aggregate_call_enter_command(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);
    int first = lua_gettop(L) + 1;

    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_command(job));
    push_state(L, job);
    push_json(L, job->command->args, "args");
    push_ctx(L, job);
    lua_call(L, 3, LUA_MULTRET);
    return take_decision(L, job, first);
}

enum status aggregate_call_command(void *self, const struct handler_call *call,
                                   size_t slot,
                                   const struct handler_command *command,
                                   struct arena *arena,
                                   struct handler_decision *decision,
                                   struct failure *failure)
{
    struct handler_job job = {
        .call = call,
        .failure = failure,
        .slot = slot,
        .command = command,
        .decision = decision,
        .arena = arena,
    };

    return handler_run(self, ENTRY_COMMAND, &job, NULL);
}
