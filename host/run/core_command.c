#include "run/core_command.h"

#include "db/url.h"
#include "run/command_run.h"
#include "run/core_module.h"
#include "run/decide.h"
#include "run/test_host.h"

#include <lauxlib.h>

/* A text of the table at index `arg`, which keeps it alive. */
static struct text member(lua_State *L, int arg, const char *name)
{
    struct text text = TEXT_NONE;

    lua_getfield(L, arg, name);
    if (lua_type(L, -1) == LUA_TSTRING)
        text.data = lua_tolstring(L, -1, &text.len);
    else if (!lua_isnil(L, -1))
        luaL_error(L, "command: '%s' must be a string, not a %s", name,
                   luaL_typename(L, -1));
    lua_pop(L, 1);
    return text;
}

static struct aggregate_command command_at(lua_State *L, int arg)
{
    struct aggregate_command command;
    struct text id;

    luaL_checktype(L, arg, LUA_TTABLE);
    command = (struct aggregate_command){
        .aggregate = member(L, arg, "aggregate"),
        .id = member(L, arg, "id"),
        .name = member(L, arg, "command"),
        .args = member(L, arg, "args"),
        .metadata = member(L, arg, "metadata"),
    };
    id = member(L, arg, "command_id");
    command.has_command_id = id.data != NULL;
    if (id.data != NULL && !uuid_parse(id, &command.command_id))
        luaL_error(L, "the command's id '%s' is not a UUID", id.data);
    return command;
}

static enum status run(struct test_host *host,
                       const struct aggregate_command *command,
                       struct buffer *out, struct diag *diag)
{
    struct aggregate_outcome outcome;
    struct aggregates *aggregates;
    enum status status = command_open(&host->app, &aggregates, diag);

    if (status != STATUS_OK)
        return status;
    status = command_run(&host->app, aggregates, command, &outcome, diag);
    if (status == STATUS_OK)
        command_json(&outcome, out);
    aggregates_close(aggregates);
    return status;
}

/* host:command({ aggregate, id, command, args, metadata, command_id }) -> JSON
 */
static int method_command(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const struct aggregate_command command = command_at(L, 2);
    struct buffer *out = core_module_scratch(L);
    struct diag diag;

    return core_module_answer(L, run(host, &command, out, &diag), out, &diag);
}

/* Reads the member `events` of the table at index 3 into userdata, which stays
 * on the stack. */
static struct append_event *push_events(lua_State *L, size_t *count)
{
    struct append_event *events;
    int list;

    lua_getfield(L, 3, "events");
    luaL_checktype(L, -1, LUA_TTABLE);
    list = lua_gettop(L);
    *count = lua_objlen(L, list);
    events = lua_newuserdata(L, *count * sizeof(*events) + 1);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, list, (int)i + 1);
        luaL_argcheck(L, lua_istable(L, -1), 3, "an event must be a table");
        core_module_event(L, &events[i]);
        lua_pop(L, 1);
    }
    return events;
}

int core_command_decide(lua_State *L)
{
    const struct clock clock = {.offset_us = 0};
    const struct log log = {.out = NULL};
    const struct script_options options = core_module_options(L, &clock, &log);
    const struct aggregate_command asked = command_at(L, 3);
    struct decide_command command = {
        .aggregate = asked.aggregate,
        .id = asked.id,
        .name = asked.name,
        .args = asked.args,
        .metadata = asked.metadata,
    };
    struct buffer *out;
    struct diag diag;

    command.events = push_events(L, &command.count);
    out = core_module_scratch(L);
    return core_module_answer(L, decide_run(&options, &command, out, &diag),
                              out, &diag);
}

void core_command_register(lua_State *L)
{
    lua_pushcfunction(L, method_command);
    lua_setfield(L, -2, "command");
}
