#include "script/lua_call.h"

#include <stdio.h>
#include <string.h>

#define PERMANENT_TYPE "moontide.permanent"
#define TRACE_FRAMES   20

/* What lua_call_run hands to the runner. */
struct job {
    lua_CFunction fn;
    void *arg;
};

/* An error value as text; the slice lives on the stack of the state. */
struct description {
    struct text text;
    bool permanent;
};

void lua_call_where(lua_State *L, char out[LIMITS_TEXT_SIZE])
{
    limits_where(L, out);
}

/* The message handler. It runs with hooks off and perhaps without memory, so
 * it calls nothing of the script and allocates nothing in Lua. */
static int note_error(lua_State *L)
{
    struct script_state *state = script_state_of(L);
    char *at = state->error_trace;
    size_t left = sizeof(state->error_trace);
    char where[LIMITS_TEXT_SIZE];
    lua_Debug frame;

    lua_call_where(L, state->error_where);
    *at = '\0';
    for (int level = 1;
         level <= TRACE_FRAMES && lua_getstack(L, level, &frame) != 0;
         level++) {
        int len;

        if (!limits_frame_where(L, &frame, where) ||
            lua_getinfo(L, "n", &frame) == 0)
            continue;
        len = snprintf(at, left, "%s%s%s%s",
                       at == state->error_trace ? "" : "\n", where,
                       frame.name != NULL ? " in " : "",
                       frame.name != NULL ? frame.name : "");
        if (len < 0 || (size_t)len >= left) {
            *at = '\0'; /* whole frames only */
            break;
        }
        at += len;
        left -= (size_t)len;
    }
    return 1;
}

static int run_job(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);

    lua_pushlightuserdata(L, job->arg);
    lua_replace(L, 1);
    return job->fn(L);
}

static int raise_deep(lua_State *L)
{
    limits_check_stack(L);
    return 0;
}

static int permanent_tostring(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_type(L, 1) != LUA_TTABLE)
        return luaL_error(L, "not a value of moontide.permanent");
    lua_pushliteral(L, "message");
    lua_rawget(L, 1);
    return 1;
}

static int init(lua_State *L)
{
    struct script_state *state = script_state_of(L);

    lua_pushcfunction(L, note_error);
    state->error_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, run_job);
    state->runner_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    (void)luaL_newmetatable(L, PERMANENT_TYPE);
    lua_pushcfunction(L, permanent_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    return 0;
}

bool lua_call_init(struct script_state *state)
{
    state->collect_at = state->limits.memory / 2;
    return lua_cpcall(state->L, init, NULL) == 0;
}

static void push_permanent(lua_State *L, const char *where, struct text message)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, where);
    lua_pushlstring(L, message.data, message.len);
    lua_concat(L, 2);
    lua_setfield(L, -2, "message");
    luaL_getmetatable(L, PERMANENT_TYPE);
    lua_setmetatable(L, -2);
}

int lua_call_permanent(lua_State *L)
{
    struct text message; /* may have any byte in it */

    message.data = luaL_checklstring(L, 1, &message.len);
    luaL_where(L, 1);
    push_permanent(L, lua_tostring(L, -1), message);
    return 1;
}

int lua_call_raise_host(lua_State *L, const struct diag *diag)
{
    struct script_state *state = script_state_of(L);

    /* The first one tells why the transaction is doomed. */
    if (!state->host_failed) {
        state->host_failed = true;
        state->host_diag = *diag;
    }
    return luaL_error(L, "%s", diag->message);
}

int lua_call_raise_failure(lua_State *L, const struct lua_failure *failure)
{
    if (failure->outcome == LUA_CALL_HOST)
        return lua_call_raise_host(L, &failure->host);
    if (failure->outcome == LUA_CALL_PERMANENT)
        push_permanent(L, "", text_of(failure->message));
    else
        lua_pushstring(L, failure->message);
    return lua_error(L);
}

static bool is_permanent(lua_State *L, int index)
{
    bool same;

    if (lua_type(L, index) != LUA_TTABLE || lua_getmetatable(L, index) == 0)
        return false;
    luaL_getmetatable(L, PERMANENT_TYPE);
    same = lua_rawequal(L, -1, -2) != 0;
    lua_pop(L, 2);
    return same;
}

/* The text of an error value that is no string: (description, value) -> text
 * on the stack. May run a __tostring of the script, so it is protected and
 * under the deadline of the call that failed. */
static int describe(lua_State *L)
{
    struct description *description = lua_touserdata(L, 1);
    const char *text;

    if (is_permanent(L, 2)) {
        description->permanent = true;
        lua_pushliteral(L, "message");
        lua_rawget(L, 2);
    } else if (luaL_callmeta(L, 2, "__tostring") == 0) {
        if (lua_type(L, 2) == LUA_TTABLE) {
            lua_pushliteral(L, "message");
            lua_rawget(L, 2);
        }
        if (lua_type(L, 2) != LUA_TTABLE || lua_type(L, -1) != LUA_TSTRING)
            lua_pushfstring(L, "error value is %s",
                            lua_isboolean(L, 2) && !lua_toboolean(L, 2)
                                ? "false"
                                : luaL_typename(L, 2));
    }
    text = lua_tolstring(L, -1, &description->text.len);
    if (text == NULL)
        return luaL_error(L, "no text");
    description->text.data = text;
    return 1;
}

/* True if `t` starts with "name:line:", as Lua's own messages do. */
static bool has_position(struct text t)
{
    const char *colon = t.len > 0 ? memchr(t.data, ':', t.len) : NULL;
    size_t at = colon != NULL ? (size_t)(colon - t.data) + 1 : t.len;
    size_t first = at;

    while (at < t.len && t.data[at] >= '0' && t.data[at] <= '9')
        at++;
    return at > first && at < t.len && t.data[at] == ':';
}

/* Names that configuration can grant, for a hint at the usual mistake. */
static const char *hint_of(const char *message)
{
    static const char *const granted[] = {"os", "io", "debug", "jit",
                                          "package"};
    char index[64];

    if (strstr(message, "attempt to yield across C-call boundary") != NULL ||
        strstr(message, "attempt to yield from outside a coroutine") != NULL)
        return " (a handler may not yield, nor may a callback of table.sort"
               " or string.gsub)";
    for (size_t i = 0; i < sizeof(granted) / sizeof(granted[0]); i++) {
        (void)snprintf(index, sizeof(index), "index global '%s' (a nil",
                       granted[i]);
        if (strstr(message, index) != NULL)
            return " (scripts do not see this library unless grants in"
                   " moontide.conf.lua names it)";
    }
    return "";
}

/* where: why (hint), clean and cut to the size of a failure reason. */
static void compose(struct lua_failure *failure, const char *where,
                    struct text why)
{
    char raw[FAILURE_REASON_SIZE];
    size_t used = 0;
    size_t room;
    size_t cut;

    if (where[0] != '\0' && !has_position(why))
        used = (size_t)snprintf(raw, sizeof(raw), "%s: ", where);
    room = sizeof(raw) - used;
    cut = why.len < room ? why.len : room;
    if (cut > 0)
        memcpy(raw + used, why.data, cut);
    used += cut;
    text_clean((struct text){raw, used}, failure->message,
               sizeof(failure->message));
    used = strlen(failure->message);
    if (used < FAILURE_REASON_CHARS / 2) {
        const char *hint = hint_of(failure->message);
        size_t len = strlen(hint);

        memcpy(failure->message + used, hint, len + 1);
        used += len;
    }
    cut = text_utf8_prefix_chars((struct text){failure->message, used},
                                 FAILURE_REASON_CHARS);
    failure->message[cut] = '\0';
}

static void run_raw(lua_State *L, lua_CFunction fn, void *arg)
{
    struct job job = {.fn = fn, .arg = arg};

    lua_rawgeti(L, LUA_REGISTRYINDEX, script_state_of(L)->runner_ref);
    lua_pushlightuserdata(L, &job);
    if (lua_pcall(L, 1, 0, 0) != 0)
        lua_pop(L, 1);
}

/* The outcome and text of the error value on the top, which is popped. */
static void tell_error(lua_State *L, struct lua_failure *failure)
{
    struct script_state *state = script_state_of(L);
    struct description description = {.text = TEXT_NONE};
    struct job job = {.fn = describe, .arg = &description};
    char late[LIMITS_TEXT_SIZE];
    int value = lua_gettop(L);

    failure->outcome = LUA_CALL_ERROR;
    if (lua_type(L, value) == LUA_TSTRING) {
        description.text.data = lua_tolstring(L, value, &description.text.len);
    } else if (lua_type(L, value) == LUA_TNIL) {
        description.text = TEXT_LITERAL("error value is nil");
    } else {
        /* note_error would overwrite where the first error was */
        lua_rawgeti(L, LUA_REGISTRYINDEX, state->runner_ref);
        lua_pushlightuserdata(L, &job);
        lua_pushvalue(L, value);
        if (lua_pcall(L, 2, 1, 0) != 0)
            description.text = TEXT_LITERAL(
                "error value whose __tostring gives no text");
        if (state->limits.expired) {
            failure->outcome = LUA_CALL_TIMEOUT;
            limits_time_text(&state->limits, late);
            description.text = text_of(late);
        }
    }
    compose(failure, state->error_where, description.text);
    if (description.permanent)
        failure->outcome = LUA_CALL_PERMANENT;
    lua_settop(L, value - 1);
}

/* A collection halves the buffer in which strings are put together, however
 * large a script has made it: as long as there is much to gain, once more. */
static int collect(lua_State *L)
{
    const struct limits *limits = limits_of(L);
    size_t before;

    do {
        before = limits->used;
        (void)lua_gc(L, LUA_GCCOLLECT, 0);
    } while (limits->used + (limits->memory >> 6) < before);
    return 0;
}

/* LuaJIT never collects because memory is short, it only raises; so the host
 * does it between calls, before half of what was free has gone. */
static void collect_if_due(lua_State *L, struct script_state *state)
{
    struct limits *limits = &state->limits;

    if (!limits->refused && limits->used < state->collect_at)
        return;
    run_raw(L, collect, NULL);
    state->collect_at = limits->used + (limits->memory - limits->used) / 2;
}

/* Decides between what went wrong, gravest first. The error value (when
 * `raised`) is on the top and popped. */
static void tell(lua_State *L, bool raised, bool memory,
                 struct lua_failure *failure)
{
    struct script_state *state = script_state_of(L);
    struct limits *limits = &state->limits;
    char text[LIMITS_TEXT_SIZE];

    (void)snprintf(failure->trace, sizeof(failure->trace), "%s",
                   state->error_trace);
    if (state->host_failed) {
        failure->outcome = LUA_CALL_HOST;
        failure->host = state->host_diag;
        compose(failure, "", text_of(state->host_diag.message));
    } else if (limits->expired) {
        failure->outcome = LUA_CALL_TIMEOUT;
        limits_time_text(limits, text);
        compose(failure, limits->where, text_of(text));
    } else if (memory || limits->refused) {
        failure->outcome = LUA_CALL_MEMORY;
        limits_memory_text(limits, text);
        compose(failure, "", text_of(text));
    } else {
        tell_error(L, failure);
        return;
    }
    if (raised)
        lua_pop(L, 1);
}

enum lua_outcome lua_call_protected(lua_State *L, int nargs, int nresults,
                                    struct lua_failure *failure)
{
    struct script_state *state = script_state_of(L);
    struct limits *limits = &state->limits;
    int base = lua_gettop(L) - nargs; /* of the function */
    bool doomed = state->host_failed;
    enum lua_outcome outcome = LUA_CALL_OK;
    bool memory = false;
    bool raised = false;

    if (state->depth == 0)
        limits_arm(limits);
    state->depth++;
    if (lua_checkstack(L, 8) == 0) { /* some for tell_error, too */
        memory = true;
        lua_settop(L, base - 1);
    } else {
        struct job deep = {.fn = raise_deep};
        int code;

        if (state->depth > 1 && limits_is_deep(limits)) {
            lua_settop(L, base - 1);
            lua_rawgeti(L, LUA_REGISTRYINDEX, state->runner_ref);
            lua_pushlightuserdata(L, &deep);
            nargs = 1;
        }
        lua_rawgeti(L, LUA_REGISTRYINDEX, state->error_ref);
        lua_insert(L, base);
        state->error_where[0] = '\0';
        state->error_trace[0] = '\0';
        code = lua_pcall(L, nargs, nresults, base);
        lua_remove(L, base);
        raised = code != 0;
        memory = code == LUA_ERRMEM;
    }
    if (raised || memory || state->host_failed || limits->expired ||
        limits->refused) {
        if (!raised)
            lua_settop(L, base - 1);
        tell(L, raised, memory, failure);
        outcome = failure->outcome;
        state->host_failed = doomed;
    }
    state->depth--;
    if (state->depth == 0) {
        limits_disarm(L, limits);
        collect_if_due(L, state);
    }
    return outcome;
}

enum lua_outcome lua_call_run(struct script_state *state, lua_CFunction fn,
                              void *arg, struct lua_failure *failure)
{
    struct job job = {.fn = fn, .arg = arg};

    lua_rawgeti(state->L, LUA_REGISTRYINDEX, state->runner_ref);
    lua_pushlightuserdata(state->L, &job);
    return lua_call_protected(state->L, 1, 0, failure);
}

enum status lua_call_foreign(lua_State *L, lua_CFunction fn, void *arg,
                             struct diag *diag)
{
    char text[DIAG_MESSAGE_SIZE];
    const char *message;
    size_t len = 0;

    if (lua_checkstack(L, 4) == 0)
        return diag_set(diag, STATUS_LIMIT, "the Lua stack is full");
    if (lua_cpcall(L, fn, arg) == 0)
        return STATUS_OK;
    message = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : "";
    text_clean((struct text){message, len}, text, sizeof(text));
    lua_pop(L, 1);
    return diag_set(diag, STATUS_CONFIG, "%s",
                    text[0] != '\0' ? text : "an error that is no text");
}

enum status lua_call_load(lua_State *L, struct text source, const char *name,
                          struct diag *diag)
{
    char chunk[LUA_IDSIZE * 8];
    char text[DIAG_MESSAGE_SIZE];
    const char *message;
    size_t len = 0;
    int n = snprintf(chunk, sizeof(chunk), "@%s", name);

    if (n < 0 || (size_t)n >= sizeof(chunk))
        return diag_set(diag, STATUS_CONFIG, "%s: the file's name is too long",
                        name);
    if (source.len > 0 && source.data[0] == LUA_SIGNATURE[0])
        return diag_set(diag, STATUS_CONFIG,
                        "%s: is bytecode; scripts are Lua text", name);
    if (lua_checkstack(L, 4) == 0)
        return diag_set(diag, STATUS_CONFIG, "%s: not enough memory", name);
    if (luaL_loadbufferx(L, source.data != NULL ? source.data : "", source.len,
                         chunk, "t") == 0)
        return STATUS_OK;
    message = lua_tolstring(L, -1, &len);
    text_clean((struct text){message, len}, text, sizeof(text));
    lua_pop(L, 1);
    if (!has_position(text_of(text)))
        return diag_set(diag, STATUS_CONFIG, "%s: %s", name, text);
    return diag_set(diag, STATUS_CONFIG, "%s", text);
}

const char *lua_call_class(enum lua_outcome outcome)
{
    if (outcome == LUA_CALL_TIMEOUT)
        return "timeout";
    return outcome == LUA_CALL_MEMORY ? "memory" : "error";
}
