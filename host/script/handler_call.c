#include "script/handler_call.h"

#include "base/memory.h"
#include "script/aggregate_call.h"
#include "script/ctx.h"
#include "script/event.h"
#include "script/event_check.h"
#include "script/handler_keys.h"
#include "script/handler_parts.h"
#include "script/handler_run.h"
#include "script/json_codec.h"
#include "script/lua_call.h"
#include "script/native.h"
#include "script/returned.h"
#include "script/saga_call.h"
#include "script/value.h"

#include <assert.h>

/* Lua's way to tell that something failed, or an event, would be dropped. */
#define RETURNS_NOTHING                                                        \
    "it returns nothing: it acts through its ctx, and fails by error(\"why\")"

/* --- state -------------------------------------------------------------------
 */

/* Puts what `initial` gives into the slot. */
static void fill_initial(lua_State *L, struct handler_job *job)
{
    handler_run_push_initial(L, job);
    if (!job->failed)
        handler_run_fill(L, job);
}

static int enter_initial(lua_State *L)
{
    fill_initial(L, lua_touserdata(L, 1));
    return 0;
}

static enum status handler_state_initial(void *self,
                                         const struct handler_call *call,
                                         size_t slot, struct failure *failure)
{
    struct handler_job job = {.call = call, .failure = failure, .slot = slot};

    return handler_run(self, ENTRY_INITIAL, &job, NULL);
}

static int enter_decode(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);
    struct diag diag;

    if (json_codec_decode(L, job->json, "state", &diag) != STATUS_OK) {
        failure_set(job->failure, false, "decode", "the stored %s",
                    diag.message);
        return handler_run_fail(job);
    }
    if (!lua_istable(L, -1)) {
        failure_set(job->failure, false, "decode",
                    "the stored state is no JSON object");
        return handler_run_fail(job);
    }
    handler_run_fill(L, job);
    return 0;
}

static enum status handler_state_decode(void *self,
                                        const struct handler_call *call,
                                        size_t slot, struct text json,
                                        struct failure *failure)
{
    struct handler_job job = {
        .call = call,
        .failure = failure,
        .slot = slot,
        .json = json,
    };

    return handler_run(self, ENTRY_DECODE, &job, NULL);
}

/* --- apply -------------------------------------------------------------------
 */

/* Pushes the handler of the message's type. */
static void push_handler(lua_State *L, const struct handler_job *job)
{
    const struct declaration *d = job->call->declaration;
    int64_t at = map_get(&job->code->types[d->index], job->type);

    if (at == MAP_ABSENT)
        luaL_error(L, "%s \"%s\" has no handler for this type of message",
                   declaration_kind_word(d->kind), d->name);
    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_code(job)->handlers[at]);
}

/* Judges what the handler gave, which lies at the top. */
static int take_result(lua_State *L, struct handler_job *job, int first)
{
    char where[LIMITS_TEXT_SIZE], shown[128];
    bool one = returned_one(L, first, shown, sizeof(shown));

    job->outcome = HANDLER_CHANGED;
    if (one && lua_isnil(L, -1))
        return 0;
    switch (one ? native_kind(L, first) : NATIVE_SPLIT) {
    case NATIVE_DELETE:
        job->outcome = HANDLER_DELETED;
        lua_pushnil(L);
        handler_run_fill(L, job);
        return 0;
    case NATIVE_NONE:
        if (!lua_istable(L, -1))
            break;
        handler_run_fill(L, job);
        return 0;
    default:
        break;
    }
    if (one)
        value_describe(L, -1, shown, sizeof(shown));
    push_handler(L, job);
    handler_run_where(L, lua_gettop(L), where, sizeof(where));
    failure_set(job->failure, false, "state",
                "%s: the handler returned %s; return nothing, a table or "
                "moontide.delete",
                where, shown);
    return handler_run_fail(job);
}

static int apply_state_part(lua_State *L, struct handler_job *job)
{
    int first = lua_gettop(L) + 1;

    if (job->outcome == HANDLER_DELETED) { /* by the part before */
        fill_initial(L, job);
        if (job->failed)
            return 0;
    }
    push_handler(L, job);
    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_slots(job));
    lua_rawgeti(L, -1, (int)job->slot + 1);
    lua_remove(L, -2);
    handler_parts_push_event(L, job);
    ctx_push(job->code, L);
    lua_call(L, 3, LUA_MULTRET);
    return take_result(L, job, first);
}

static int enter_apply_state(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);

    job->outcome = HANDLER_UNTOUCHED;
    handler_parts_each(L, job, true, apply_state_part);
    return 0;
}

static int apply_part(lua_State *L, struct handler_job *job)
{
    int function = lua_gettop(L) + 1;

    job->code->part = job->part;
    push_handler(L, job);
    lua_pushvalue(L, -1);
    handler_parts_push_event(L, job);
    ctx_push(job->code, L);
    lua_call(L, 2, LUA_MULTRET);
    return returned_by_ctx(L, job, function, function + 1, RETURNS_NOTHING);
}

static int enter_apply(lua_State *L)
{
    handler_parts_each(L, lua_touserdata(L, 1), true, apply_part);
    return 0;
}

static enum status
handler_apply_state(void *self, const struct handler_call *call, size_t slot,
                    enum handler_outcome *outcome, struct failure *failure,
                    struct diag *diag)
{
    struct handler_job job = {.call = call, .failure = failure, .slot = slot};
    enum status status;

    if (handler_run_fails_as_asked(self, call, failure))
        return STATUS_FAILED;
    status = handler_run(self, ENTRY_APPLY_STATE, &job, diag);
    *outcome = job.outcome;
    return status;
}

static enum status handler_apply(void *self, const struct handler_call *call,
                                 struct failure *failure, struct diag *diag)
{
    struct handler_job job = {.call = call, .failure = failure};

    if (handler_run_fails_as_asked(self, call, failure))
        return STATUS_FAILED;
    return handler_run(self, ENTRY_APPLY, &job, diag);
}

static int enter_reset(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_code(job)->reset);
    lua_pushvalue(L, -1);
    ctx_push(job->code, L);
    lua_call(L, 1, LUA_MULTRET);
    return returned_by_ctx(L, job, 2, 3, RETURNS_NOTHING);
}

static enum status handler_reset(void *self, const struct handler_call *call,
                                 struct failure *failure, struct diag *diag)
{
    struct handler_job job = {.call = call, .failure = failure};

    return handler_run(self, ENTRY_RESET, &job, diag);
}

/* --- encode -----------------------------------------------------------------
 */

static int enter_encode(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);
    const struct declaration *d = job->call->declaration;
    size_t from = job->out->len;
    struct diag diag;
    int state;

    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_slots(job));
    lua_rawgeti(L, -1, (int)job->slot + 1);
    state = lua_gettop(L);
    if (json_codec_encode_tree(L, state, "state", job->out, &diag) !=
        STATUS_OK) {
        failure_set(job->failure, false, "state", "%s", diag.message);
        return handler_run_fail(job);
    }
    if ((int64_t)(job->out->len - from) > job->code->payload) {
        failure_set(job->failure, false, "limit",
                    "the state has %zu bytes; limits.payload allows %lld",
                    job->out->len - from, (long long)job->code->payload);
        return handler_run_fail(job);
    }
    for (size_t i = 0; i < d->nfields; i++) {
        lua_pushstring(L, d->fields[i].name);
        lua_rawget(L, state);
        if (value_field(L, state + 1, &d->fields[i], job->arena,
                        &job->fields[i], &diag) != STATUS_OK) {
            failure_set(job->failure, false, "state", "%s", diag.message);
            return handler_run_fail(job);
        }
        lua_pop(L, 1);
    }
    return 0;
}

static enum status
handler_state_encode(void *self, const struct handler_call *call, size_t slot,
                     struct buffer *json, struct db_value *fields,
                     struct arena *arena, struct failure *failure)
{
    struct handler_job job = {
        .call = call,
        .failure = failure,
        .slot = slot,
        .out = json,
        .fields = fields,
        .arena = arena,
    };
    size_t from = json->len;
    enum status status = handler_run(self, ENTRY_ENCODE, &job, NULL);

    if (status != STATUS_OK && json->data != NULL) {
        json->len = from; /* a raise may have left a part */
        json->data[from] = '\0';
    }
    return status;
}

/* --- on_error ----------------------------------------------------------------
 */

/* What on_error learns of the failure. */
static void push_failure(lua_State *L, const struct handler_job *job)
{
    const char *reason = job->happened->reason;
    const char *colon = strchr(reason, ':');

    lua_createtable(L, 0, 4);
    lua_pushstring(L, reason);
    lua_setfield(L, -2, "reason");
    lua_pushlstring(L, reason,
                    colon != NULL ? (size_t)(colon - reason) : strlen(reason));
    lua_setfield(L, -2, "class");
    lua_pushboolean(L, job->happened->permanent);
    lua_setfield(L, -2, "permanent");
    lua_pushinteger(L, job->failures);
    lua_setfield(L, -2, "attempts");
}

static int enter_on_error(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);
    char where[LIMITS_TEXT_SIZE], shown[128];
    struct text word;
    bool one;

    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_code(job)->on_error);
    lua_pushvalue(L, -1);
    event_push(job->code, L);
    push_failure(L, job);
    lua_call(L, 2, LUA_MULTRET);
    one = returned_one(L, 3, shown, sizeof(shown));
    if (one && lua_type(L, -1) == LUA_TSTRING) {
        word.data = lua_tolstring(L, -1, &word.len);
        if (error_policy_parse(word, &job->policy))
            return 0;
    }
    if (one)
        value_describe(L, -1, shown, sizeof(shown));
    handler_run_where(L, 2, where, sizeof(where));
    failure_set(job->failure, false, "error",
                "%s: on_error returned %s; it must return " ON_ERROR_WORDS,
                where, shown);
    return handler_run_fail(job);
}

static enum status handler_on_error(void *self, const struct handler_call *call,
                                    int failures, const struct failure *failure,
                                    enum error_policy *policy,
                                    struct failure *refused)
{
    struct handler_job job = {
        .call = call,
        .failure = refused,
        .happened = failure,
        .failures = failures,
    };
    enum status status = handler_run(self, ENTRY_ON_ERROR, &job, NULL);

    *policy = job.policy;
    return status;
}

/* --- life -------------------------------------------------------------------
 */

static int forget_slots(lua_State *L)
{
    struct handler_code *code = lua_touserdata(L, 1);

    lua_newtable(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, code->slots);
    return 0;
}

static void handler_batch_end(void *self)
{
    struct handler_code *code = self;
    struct lua_failure failure;

    sql_text_trim(&code->texts);
    /* without memory the old states stay until the next batch's end */
    if (lua_call_run(code->state, forget_slots, code, &failure) != LUA_CALL_OK)
        return;
}

/* Outside of a call: a payload's fields are checked in Lua. */
static enum status check_events(void *self, struct append_event *events,
                                size_t count, struct failure *failure)
{
    struct handler_code *code = self;
    const struct event_types *types = &code->set->event_types;
    struct diag diag;

    for (size_t i = 0; types->count > 0 && i < count; i++) {
        if (event_check(code->state, types, &events[i], &diag) == STATUS_OK)
            continue;
        failure_set(failure, false, "emit", "ctx:emit of %.*s: %s",
                    TEXT_ARGS(events[i].type), diag.message);
        return STATUS_FAILED;
    }
    return STATUS_OK;
}

const struct handler_ops handler_call_ops = {
    .check_events = check_events,
    .keys = handler_keys_tell,
    .state_initial = handler_state_initial,
    .state_decode = handler_state_decode,
    .apply_state = handler_apply_state,
    .apply_event = aggregate_call_apply,
    .command = aggregate_call_command,
    .saga_parts = saga_call_parts,
    .saga = saga_call_run,
    .apply = handler_apply,
    .state_encode = handler_state_encode,
    .on_error = handler_on_error,
    .reset = handler_reset,
    .batch_end = handler_batch_end,
};

static int prepare(lua_State *L)
{
    static const lua_CFunction entries[ENTRY_COUNT] = {
        [ENTRY_KEYS] = handler_keys_enter,
        [ENTRY_INITIAL] = enter_initial,
        [ENTRY_DECODE] = enter_decode,
        [ENTRY_APPLY_STATE] = enter_apply_state,
        [ENTRY_APPLY] = enter_apply,
        [ENTRY_APPLY_EVENT] = aggregate_call_enter_apply,
        [ENTRY_COMMAND] = aggregate_call_enter_command,
        [ENTRY_ENCODE] = enter_encode,
        [ENTRY_ON_ERROR] = enter_on_error,
        [ENTRY_RESET] = enter_reset,
        [ENTRY_SAGA_PARTS] = saga_call_enter_parts,
        [ENTRY_SAGA] = saga_call_enter,
    };
    struct handler_code *code = lua_touserdata(L, 1);

    for (int i = 0; i < ENTRY_COUNT; i++) {
        lua_pushcfunction(L, entries[i]);
        code->entries[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_newtable(L);
    code->slots = luaL_ref(L, LUA_REGISTRYINDEX);
    aggregate_call_register(code, L);
    saga_call_register(code, L);
    event_register(code, L);
    ctx_register(code, L);
    handler_run_note_wheres(code, L);
    return 0;
}

static void index_types(struct handler_code *code)
{
    bool added;

    for (size_t i = 0; i < code->set->total; i++) {
        const struct declaration *d = &code->set->items[i];

        for (size_t t = 0; t < d->ntypes; t++)
            map_put(&code->types[i], d->types[t], (int64_t)t, &added);
    }
}

enum status handler_call_open(const struct handler_call_options *options,
                              struct handler_code **code, struct diag *diag)
{
    struct handler_code *made = mem_alloc(sizeof(*made));
    size_t count = options->set->total;
    struct lua_failure failure;

    made->state = options->state;
    made->L = options->state->L;
    made->set = options->set;
    made->payload = options->payload;
    made->log = options->log;
    made->contexts = mem_alloc(count * sizeof(*made->contexts) + 1);
    made->types = mem_alloc(count * sizeof(*made->types) + 1);
    made->wheres = mem_alloc(count * sizeof(*made->wheres) + 1);
    index_types(made);
    if (lua_call_run(made->state, prepare, made, &failure) != LUA_CALL_OK) {
        handler_call_close(made);
        return diag_set(diag,
                        failure.outcome == LUA_CALL_MEMORY ? STATUS_LIMIT
                                                           : STATUS_CONFIG,
                        "%s", failure.message);
    }
    *code = made;
    return STATUS_OK;
}

void handler_call_close(struct handler_code *code)
{
    if (code == NULL)
        return;
    for (size_t i = 0; i < code->set->total; i++)
        map_free(&code->types[i]);
    for (size_t i = 0; i < code->nasked; i++) {
        mem_free((char *)code->asked[i].consumer);
        mem_free((char *)code->asked[i].type);
    }
    mem_free(code->asked);
    mem_free(code->types);
    mem_free((void *)code->wheres);
    arena_free(&code->arena);
    mem_free(code->contexts);
    buffer_free(&code->scratch);
    sql_text_free(&code->texts);
    mem_free(code);
}

void handler_call_watch(struct handler_code *code, struct attempt_slot *slot)
{
    code->slot = slot;
}

void handler_call_fail_next(struct handler_code *code, const char *consumer,
                            const char *type, int times)
{
    struct handler_failure_asked asked = {
        .consumer = mem_copy_text(consumer, strlen(consumer)),
        .type = mem_copy_text(type, strlen(type)),
        .times = times,
    };

    code->asked = mem_grow(code->asked, code->nasked + 1, sizeof(*code->asked));
    code->asked[code->nasked++] = asked;
}
