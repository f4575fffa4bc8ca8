#include "run/core_operate.h"

#include "base/buffer.h"
#include "run/core_module.h"
#include "run/operate_json.h"
#include "run/test_host.h"

#include <lauxlib.h>

/* --- reading arguments ---------------------------------------------------- */

/* A string member of the table at `arg`, NULL when there is none. It lives as
 * long as the table. */
static const char *string_member(lua_State *L, int arg, const char *name)
{
    const char *value;

    lua_getfield(L, arg, name);
    if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "'%s' must be a string, not a %s", name,
                   luaL_typename(L, -1));
    value = lua_tostring(L, -1);
    lua_pop(L, 1);
    return value;
}

static bool flag_member(lua_State *L, int arg, const char *name)
{
    bool value;

    lua_getfield(L, arg, name);
    value = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    return value;
}

/* A moment that lies so long ago, 0 when there is no such member. */
static int64_t time_member(lua_State *L, int arg, const char *name,
                           const struct clock *clock)
{
    const char *age = string_member(L, arg, name);
    struct diag diag;
    int64_t us;

    if (age == NULL)
        return 0;
    if (clock_parse_duration(text_of(age), &us, &diag) != STATUS_OK)
        luaL_error(L, "'%s': %s", name, diag.message);
    return clock_now(clock) - us;
}

static struct letter_filter filter_at(lua_State *L, int arg,
                                      const struct clock *clock)
{
    struct letter_filter filter;

    luaL_checktype(L, arg, LUA_TTABLE);
    filter = (struct letter_filter){
        .id = string_member(L, arg, "id"),
        .type = string_member(L, arg, "type"),
        .key = string_member(L, arg, "key"),
        .error = string_member(L, arg, "error"),
        .status = string_member(L, arg, "status"),
        .recorded_before = time_member(L, arg, "older_than", clock),
        .recorded_after = time_member(L, arg, "newer_than", clock),
    };
    lua_getfield(L, arg, "position");
    filter.position = (int64_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return filter;
}

/* --- running a verb ------------------------------------------------------- */

/* What the scripts declare lies in userdata on the stack. */
static struct operate_env push_env(lua_State *L, struct test_host *host)
{
    size_t count = 0;
    const struct declaration *list = script_declarations(host->app.script,
                                                         &count);
    const char **names = lua_newuserdata(L, (count + 1) * sizeof(*names));
    const char **types = lua_newuserdata(L, (count + 1) * sizeof(*types));
    const char **sources = lua_newuserdata(L, (count + 1) * sizeof(*sources));
    const struct fingerprint **fingerprints = lua_newuserdata(
        L, (count + 1) * sizeof(struct fingerprint *));

    for (size_t i = 0; i < count; i++) {
        names[i] = list[i].name;
        types[i] = declaration_consumer_type(&list[i]);
        sources[i] = list[i].source;
        fingerprints[i] = declaration_is_projection(&list[i])
                              ? &list[i].fingerprint
                              : NULL;
    }
    names[count] = NULL;
    return (struct operate_env){
        .db = host->app.db,
        .catalog = host->app.catalog,
        .names = &host->app.settings->names,
        .clock = &host->app.clock,
        .notify = host->app.settings->notify,
        .declared = names,
        .types = types,
        .sources = sources,
        .fingerprints = fingerprints,
    };
}

/* Nothing is owned when this raises. */
static int push_result(lua_State *L, enum status status,
                       struct operate_result *result, struct buffer *out,
                       const struct diag *diag)
{
    if (status == STATUS_OK) {
        operate_json_result(out, result);
        operate_result_free(result);
    }
    return core_module_answer(L, status, out, diag);
}

/* host:pause(consumer) -> JSON */
static int method_pause(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const char *consumer = luaL_checkstring(L, 2);
    const struct operate_env env = push_env(L, host);
    struct buffer *out = core_module_scratch(L);
    struct operate_result result;
    struct diag diag;
    enum status status = operate_pause(&env, consumer, &result, &diag);

    return push_result(L, status, &result, out, &diag);
}

/* host:resume(consumer, { past, every_key, accept }) -> JSON */
static int method_resume(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const char *consumer = luaL_checkstring(L, 2);
    const struct operate_env env = push_env(L, host);
    struct buffer *out = core_module_scratch(L);
    struct operate_resume how;
    struct operate_result result;
    struct diag diag;
    enum status status;

    luaL_checktype(L, 3, LUA_TTABLE);
    how = (struct operate_resume){
        .past = flag_member(L, 3, "past"),
        .every_key = flag_member(L, 3, "every_key"),
        .accept = flag_member(L, 3, "accept"),
    };
    status = operate_resume(&env, consumer, &how, &result, &diag);
    return push_result(L, status, &result, out, &diag);
}

/* host:rebuild(consumer, { key, cancel }) -> JSON */
static int method_rebuild(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    struct buffer *out = core_module_scratch(L);
    struct rebuild_order order = {.consumer = luaL_checkstring(L, 2)};
    struct rebuild_report report;
    struct diag diag;
    enum status status;

    luaL_checktype(L, 3, LUA_TTABLE);
    order.key = string_member(L, 3, "key");
    order.cancel = flag_member(L, 3, "cancel");
    order.restart = flag_member(L, 3, "restart");
    status = rebuild_run(&host->app, &order, &report, &diag);
    if (status == STATUS_OK)
        operate_json_rebuild(out, &order, &report);
    return core_module_answer(L, status, out, &diag);
}

/* host:unsubscribe(consumer, { source, force }) -> JSON */
static int method_unsubscribe(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const char *consumer = luaL_checkstring(L, 2);
    const struct operate_env env = push_env(L, host);
    struct buffer *out = core_module_scratch(L);
    struct operate_unsubscribe how;
    struct operate_result result;
    struct diag diag;
    enum status status;

    luaL_checktype(L, 3, LUA_TTABLE);
    how = (struct operate_unsubscribe){
        .source = string_member(L, 3, "source"),
        .force = flag_member(L, 3, "force"),
    };
    status = operate_unsubscribe(&env, consumer, &how, &result, &diag);
    return push_result(L, status, &result, out, &diag);
}

/* host:dead_letters(filter) -> JSON, messages included */
static int method_dead_letters(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const struct letter_filter filter = filter_at(L, 2, &host->app.clock);
    const char *consumer = string_member(L, 2, "consumer");
    const struct operate_env env = push_env(L, host);
    struct buffer *out = core_module_scratch(L);
    struct arena arena = ARENA_EMPTY;
    struct letters letters;
    struct diag diag;
    enum status status = operate_list(&env, consumer, &filter, SIZE_MAX,
                                      LETTER_WHOLE, &arena, &letters, &diag);

    if (status == STATUS_OK)
        operate_json_letters(out, &letters, true);
    arena_free(&arena);
    return core_module_answer(L, status, out, &diag);
}

static int change(lua_State *L, bool deletes)
{
    struct test_host *host = core_module_host(L, 1);
    const struct letter_filter filter = filter_at(L, 2, &host->app.clock);
    const char *consumer = string_member(L, 2, "consumer");
    const struct operate_env env = push_env(L, host);
    struct buffer *out = core_module_scratch(L);
    struct letters_result result;
    struct diag diag;
    enum status status;

    if (consumer == NULL && !letter_filter_narrows(&filter) &&
        !flag_member(L, 2, "all"))
        return luaL_error(L, "say which messages: an id, a filter, or "
                             "all = true");
    status = deletes ? operate_delete(&env, consumer, &filter, &result, &diag)
                     : operate_retry(&env, consumer, &filter, &result, &diag);
    if (status == STATUS_OK) {
        operate_json_change(out, &result, deletes);
        letters_result_free(&result);
    }
    return core_module_answer(L, status, out, &diag);
}

/* host:retry(filter) -> JSON */
static int method_retry(lua_State *L)
{
    return change(L, false);
}

/* host:delete(filter) -> JSON */
static int method_delete(lua_State *L)
{
    return change(L, true);
}

static const luaL_Reg methods[] = {
    {"pause", method_pause},
    {"resume", method_resume},
    {"rebuild", method_rebuild},
    {"unsubscribe", method_unsubscribe},
    {"dead_letters", method_dead_letters},
    {"retry", method_retry},
    {"delete", method_delete},
    {NULL, NULL},
};

void core_operate_register(lua_State *L)
{
    luaL_register(L, NULL, methods);
}
