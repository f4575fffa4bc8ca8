#include "script/saga_call.h"

#include "base/clock.h"
#include "script/ctx.h"
#include "script/ctx_effect.h"
#include "script/handler_parts.h"
#include "script/json_codec.h"
#include "script/returned.h"
#include "script/saga_step_call.h"
#include "script/value.h"

#include <math.h>

static const char *const NAMES[] = {"id",       "state",   "deadline", "cancel",
                                    "complete", "history", NULL};

/* Upvalues of saga_index; methods have the first one only. */
enum { UP_CODE = 1, UP_METHODS };

#define MICROSECONDS 1e6
#define AHEAD_MAX    (3650 * INT64_C(86400) * 1000000) /* ten years */
#define TOO_FAR      "saga:deadline: \"%s\" is more than ten years ahead"

/* --- the saga that a script sees --------------------------------------------
 */

static struct handler_code *check_saga(lua_State *L, const char *method)
{
    struct handler_code *code = lua_touserdata(L, lua_upvalueindex(UP_CODE));

    if (lua_type(L, 1) != LUA_TTABLE)
        luaL_error(L, "call it with a colon: saga:%s(...)", method);
    if (code->saga == NULL || lua_topointer(L, 1) != code->saga_object)
        luaL_error(L, "a saga is only usable inside its handler");
    return code;
}

static int unknown_name(lua_State *L, const char *what)
{
    const char *key = value_name(L, 2);
    const char *near = text_nearest(key, NAMES);

    if (near != NULL)
        return luaL_error(L, "%s \"%s\"; did you mean \"%s\"?", what, key,
                          near);
    return luaL_error(L, "%s \"%s\"; what it remembers is kept in saga.state",
                      what, key);
}

/* __index(saga, key); `state` is there unless a handler took it away */
static int saga_index(lua_State *L)
{
    const struct handler_code *code;
    struct text key;

    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(UP_METHODS));
    if (!lua_isnil(L, -1))
        return 1;
    key = TEXT_LITERAL("");
    if (lua_type(L, 2) == LUA_TSTRING)
        key.data = lua_tolstring(L, 2, &key.len);
    if (text_equal(key, TEXT_LITERAL("state")))
        return 1;
    if (text_equal(key, TEXT_LITERAL("history"))) {
        saga_step_call_push_history(check_saga(L, "complete"), L);
        return 1;
    }
    if (!text_equal(key, TEXT_LITERAL("id")))
        return unknown_name(L, "a saga has no");
    code = check_saga(L, "complete");
    lua_pushlstring(L, code->call->key.data, code->call->key.len);
    return 1;
}

static int saga_newindex(lua_State *L)
{
    struct text key = TEXT_LITERAL("");
    const char *const *name = NAMES;

    if (lua_type(L, 2) == LUA_TSTRING)
        key.data = lua_tolstring(L, 2, &key.len);
    if (!text_equal(key, TEXT_LITERAL("state"))) {
        while (*name != NULL && !text_equal(key, text_of(*name)))
            name++;
        if (*name != NULL)
            return luaL_error(L,
                              "saga.%s is read only; what the saga remembers "
                              "is kept in saga.state",
                              *name);
        return unknown_name(L, "a saga takes no");
    }
    lua_rawset(L, 1);
    return 0;
}

/* saga:complete() */
static int saga_complete(lua_State *L)
{
    struct handler_code *code = check_saga(L, "complete");

    if (code->call->declaration->nsteps > 0)
        return luaL_error(L, "saga:complete: this saga has steps, and ends "
                             "when they have");
    code->saga->completed = true;
    return 0;
}

/* --- deadlines --------------------------------------------------------------
 */

static size_t check_name(struct handler_code *code, lua_State *L,
                         const char *method)
{
    const struct declaration *d = code->call->declaration;
    const char *near = NULL;
    struct text name;

    if (lua_type(L, 2) != LUA_TSTRING)
        luaL_error(L, "saga:%s takes the deadline's name first, not a %s",
                   method, luaL_typename(L, 2));
    name.data = lua_tolstring(L, 2, &name.len);
    for (size_t i = 0; i < d->ndeadlines; i++)
        if (text_equal(d->deadlines[i], name))
            return i;
    if (d->ndeadlines > 0) {
        const char **names = lua_newuserdata(L, (d->ndeadlines + 1) *
                                                    sizeof(*names));

        for (size_t i = 0; i < d->ndeadlines; i++)
            names[i] = d->deadlines[i].data;
        names[d->ndeadlines] = NULL;
        near = text_nearest(name.data, names);
    }
    luaL_error(L,
               "saga:%s: no deadline is called \"%s\"%s%s%s; the saga's "
               "`deadlines` have a handler for each",
               method, value_name(L, 2),
               near != NULL ? "; did you mean \"" : "",
               near != NULL ? near : "", near != NULL ? "\"?" : "");
    return 0;
}

/* Whether it is a duration but for its size: its last digits are one. */
static bool is_far(struct text text)
{
    size_t digits = 0;
    int64_t us;

    while (digits < text.len && text.data[digits] >= '0' &&
           text.data[digits] <= '9')
        digits++;
    if (digits < 2)
        return false;
    text.data += digits - 1;
    text.len -= digits - 1;
    return clock_parse_duration(text, &us, NULL) == STATUS_OK;
}

static bool is_negative(struct text text)
{
    const struct text rest = {text.data + 1, text.len - 1};
    int64_t us;

    return text.len > 1 && text.data[0] == '-' &&
           (is_far(rest) || clock_parse_duration(rest, &us, NULL) == STATUS_OK);
}

/* Seconds, text like "30m", or a point in time. */
static void take_when(lua_State *L, struct handler_deadline *deadline)
{
    struct text text;
    struct diag diag;
    double us;

    if (lua_type(L, 3) == LUA_TNUMBER) {
        us = floor(lua_tonumber(L, 3) * MICROSECONDS + 0.5);
        if (!(us >= 0 && us <= (double)AHEAD_MAX))
            luaL_error(L,
                       "saga:deadline: %s seconds; a deadline is 0 seconds "
                       "to ten years ahead",
                       lua_tostring(L, 3));
        deadline->from_now = true;
        deadline->at_us = (int64_t)us;
        return;
    }
    if (lua_type(L, 3) != LUA_TSTRING)
        luaL_error(L,
                   "saga:deadline takes when it is due second: seconds, text "
                   "like \"30m\", or a time like \"2027-01-31T12:00:00Z\"; not "
                   "a %s",
                   luaL_typename(L, 3));
    text.data = lua_tolstring(L, 3, &text.len);
    if (clock_parse_duration(text, &deadline->at_us, NULL) == STATUS_OK) {
        deadline->from_now = true;
        if (deadline->at_us > AHEAD_MAX)
            luaL_error(L, TOO_FAR, text.data);
    } else if (is_far(text)) {
        luaL_error(L, TOO_FAR, text.data);
    } else if (is_negative(text)) {
        luaL_error(L,
                   "saga:deadline: \"%s\" is negative; a deadline is 0 seconds "
                   "to ten years ahead",
                   text.data);
    } else if (clock_parse(text, &deadline->at_us, &diag) != STATUS_OK) {
        luaL_error(L,
                   "saga:deadline: \"%s\" is neither a duration like \"30m\" "
                   "nor a time like \"2027-01-31T12:00:00Z\"",
                   text.data);
    }
}

static struct text encode(struct handler_code *code, lua_State *L, int index,
                          const char *root)
{
    struct buffer *out = &code->scratch;
    struct diag diag;

    buffer_clear(out);
    if (json_codec_encode(L, index, root, out, &diag) != STATUS_OK)
        luaL_error(L, "saga:deadline: %s", diag.message);
    if ((int64_t)out->len > code->payload)
        luaL_error(L,
                   "saga:deadline: the %s has %d bytes; limits.payload allows "
                   "%d",
                   root, (int)out->len, (int)code->payload);
    return arena_copy(code->saga->arena, buffer_text(out));
}

static void keep(struct handler_code *code,
                 const struct handler_deadline *deadline)
{
    struct handler_saga *saga = code->saga;

    saga->deadlines = arena_grow(saga->arena, saga->deadlines, saga->ndeadlines,
                                 sizeof(*saga->deadlines));
    saga->deadlines[saga->ndeadlines++] = *deadline;
}

/* saga:deadline(name, when[, payload]): sets it, or moves it */
static int saga_deadline(lua_State *L)
{
    struct handler_code *code = check_saga(L, "deadline");
    struct handler_deadline deadline = {
        .name = check_name(code, L, "deadline")};

    if (code->saga->completed)
        return luaL_error(L, "saga:deadline: the saga is complete, and its "
                             "deadlines are gone");
    lua_settop(L, 4);
    luaL_checkstack(L, 24, NULL);
    take_when(L, &deadline);
    if (!lua_isnil(L, 4))
        deadline.payload = encode(code, L, 4, "payload");
    ctx_effect_push_metadata(code, L, "deadline");
    deadline.metadata = encode(code, L, lua_gettop(L), "metadata");
    keep(code, &deadline);
    return 0;
}

/* saga:cancel(name) */
static int saga_cancel(lua_State *L)
{
    struct handler_code *code = check_saga(L, "cancel");

    keep(code, &(struct handler_deadline){
                   .name = check_name(code, L, "cancel"),
                   .cancelled = true,
               });
    return 0;
}

void saga_call_register(struct handler_code *code, lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"deadline", saga_deadline},
        {"cancel", saga_cancel},
        {"complete", saga_complete},
        {NULL, NULL},
    };

    lua_createtable(L, 0, 3);
    lua_pushlightuserdata(L, code);
    lua_createtable(L, 0, 3);
    for (size_t i = 0; methods[i].name != NULL; i++) {
        lua_pushlightuserdata(L, code);
        lua_pushcclosure(L, methods[i].func, 1);
        lua_setfield(L, -2, methods[i].name);
    }
    lua_pushcclosure(L, saga_index, 2);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, saga_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pushliteral(L, "moontide.saga");
    lua_setfield(L, -2, "__metatable");
    code->saga_metatable = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* --- what a message is ------------------------------------------------------
 */

static int note_part(lua_State *L, struct handler_job *job)
{
    const struct declaration *d = job->call->declaration;
    int64_t at = map_get(&job->code->types[d->index], job->type);

    (void)L;
    if (at == MAP_ABSENT) { /* an earlier version of the script took it */
        failure_set(job->failure, false, "error",
                    "%s:%d: the saga has no handler for %.*s", d->file, d->line,
                    TEXT_ARGS(job->type));
        return handler_run_fail(job);
    }
    job->parts = arena_grow(job->arena, job->parts, job->nparts,
                            sizeof(*job->parts));
    job->parts[job->nparts++] = (struct handler_part){(size_t)at, job->part};
    return 0;
}

int saga_call_enter_parts(lua_State *L)
{
    handler_parts_each(L, lua_touserdata(L, 1), true, note_part);
    return 0;
}

enum status saga_call_parts(void *self, const struct handler_call *call,
                            struct arena *arena, struct handler_part **parts,
                            size_t *count, struct failure *failure)
{
    const struct handler_code *code = self;
    struct handler_job job = {.call = call, .failure = failure, .arena = arena};
    enum status status = STATUS_OK;

    if (code->set->event_types.count > 0) {
        status = handler_run(self, ENTRY_SAGA_PARTS, &job, NULL);
    } else {
        job.code = self;
        job.type = call->message->type;
        note_part(NULL, &job);
        if (job.failed)
            status = STATUS_FAILED;
    }
    *parts = job.parts;
    *count = job.nparts;
    return status;
}

/* --- one call ---------------------------------------------------------------
 */

/* Leaves the saga of the job's slot at the top. */
static void push_saga(lua_State *L, struct handler_job *job)
{
    struct handler_saga *saga = job->saga;
    struct diag diag;

    if (saga->held) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_slots(job));
        lua_rawgeti(L, -1, (int)job->slot + 1);
        lua_remove(L, -2);
        return;
    }
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "state");
    if (saga->state.data == NULL) {
        handler_run_push_initial(L, job);
    } else if (json_codec_decode(L, saga->state, "state", &diag) != STATUS_OK) {
        failure_set(job->failure, false, "decode", "the stored %s",
                    diag.message);
        handler_run_fail(job);
    }
    if (job->failed)
        return;
    lua_rawset(L, -3);
    lua_rawgeti(L, LUA_REGISTRYINDEX, job->code->saga_metatable);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    handler_run_fill(L, job);
}

/* deadline: name, payload, due_at */
static void push_deadline(lua_State *L, struct handler_job *job)
{
    const struct handler_saga *saga = job->saga;
    struct text name = job->call->declaration->deadlines[saga->deadline];
    char time[CLOCK_TEXT_SIZE];
    struct diag diag;

    lua_createtable(L, 0, 3);
    lua_pushlstring(L, name.data, name.len);
    lua_setfield(L, -2, "name");
    clock_format(saga->due_at, time);
    lua_pushstring(L, time);
    lua_setfield(L, -2, "due_at");
    if (saga->payload.data == NULL)
        return;
    if (json_codec_decode(L, saga->payload, "payload", &diag) != STATUS_OK)
        luaL_error(L, "the stored %s", diag.message);
    lua_setfield(L, -2, "payload");
}

static int function_of(const struct handler_job *job)
{
    const struct declare_code *functions = handler_run_code(job);
    const struct handler_saga *saga = job->saga;

    switch (saga->function) {
    case HANDLER_SAGA_DEADLINE:
        return functions->deadlines[saga->deadline];
    case HANDLER_SAGA_MESSAGE:
        return functions->messages[2 * saga->step + saga->compensation];
    case HANDLER_SAGA_END:
        return functions->on_end;
    case HANDLER_SAGA_EVENT:
        break;
    }
    return functions->handlers[saga->part.type];
}

/* The saga lies at `index`. */
static int call_function(lua_State *L, struct handler_job *job, int index)
{
    int top = lua_gettop(L);

    lua_rawgeti(L, LUA_REGISTRYINDEX, function_of(job));
    lua_pushvalue(L, -1);
    lua_pushvalue(L, index);
    if (job->saga->function == HANDLER_SAGA_END)
        lua_pushstring(L, job->saga->outcome);
    else if (job->saga->function == HANDLER_SAGA_DEADLINE)
        push_deadline(L, job);
    else if (job->saga->of_deadline)
        lua_pushnil(L);
    else
        handler_parts_push_event(L, job);
    ctx_push(job->code, L);
    lua_call(L, 3, LUA_MULTRET);
    if (job->saga->function == HANDLER_SAGA_MESSAGE) {
        saga_step_call_take_message(L, job, top + 1);
        lua_settop(L, top);
        return 0;
    }
    (void)returned_nothing(L, job, top + 1, top + 2,
                           "a saga's handler changes saga.state and returns "
                           "nothing");
    lua_settop(L, top);
    return 0;
}

/* Appends the state of the saga at `index`. */
static void encode_state(lua_State *L, struct handler_job *job, int index)
{
    struct buffer *out = job->saga->json;
    size_t from = out->len;
    char shown[128];
    struct diag diag;

    lua_pushliteral(L, "state");
    lua_rawget(L, index);
    if (!lua_istable(L, -1)) {
        value_describe(L, -1, shown, sizeof(shown));
        failure_set(job->failure, false, "state",
                    "saga.state is %s; it must be a table", shown);
        handler_run_fail(job);
    } else if (json_codec_encode_tree(L, lua_gettop(L), "state", out, &diag) !=
               STATUS_OK) {
        failure_set(job->failure, false, "state", "%s", diag.message);
        handler_run_fail(job);
    } else if ((int64_t)(out->len - from) > job->code->payload) {
        failure_set(job->failure, false, "limit",
                    "the saga's state has %zu bytes; limits.payload allows "
                    "%lld",
                    out->len - from, (long long)job->code->payload);
        handler_run_fail(job);
    }
}

static int run_part(lua_State *L, struct handler_job *job)
{
    int saga = lua_gettop(L) + 1;

    if (!handler_saga_of_deadline(job->saga) &&
        job->part != job->saga->part.part)
        return 0;
    job->code->part = job->part;
    push_saga(L, job);
    if (job->failed)
        return 0;
    job->code->saga_object = lua_topointer(L, saga);
    if (function_of(job) >= 0)
        call_function(L, job, saga);
    if (!job->failed)
        encode_state(L, job, saga);
    lua_settop(L, saga - 1);
    return 0;
}

int saga_call_enter(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);

    if (handler_saga_of_deadline(job->saga))
        return run_part(L, job);
    handler_parts_each(L, job, false, run_part);
    return 0;
}

enum status saga_call_run(void *self, const struct handler_call *call,
                          size_t slot, struct handler_saga *saga,
                          struct failure *failure, struct diag *diag)
{
    struct handler_job job = {
        .call = call,
        .failure = failure,
        .slot = slot,
        .saga = saga,
    };
    size_t from = saga->json->len;
    enum status status;

    saga->completed = false;
    saga->deadlines = NULL;
    saga->ndeadlines = 0;
    if (saga->function == HANDLER_SAGA_EVENT &&
        handler_run_fails_as_asked(self, call, failure))
        return STATUS_FAILED;
    status = handler_run(self, ENTRY_SAGA, &job, diag);
    if (status != STATUS_OK && saga->json->data != NULL) {
        saga->json->len = from; /* a raise may have left a part */
        saga->json->data[from] = '\0';
    }
    return status;
}
