#include "cli/cli.h"
#include "cli/lua_runtime.h"

#include "base/memory.h"
#include "db/url.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <unistd.h>

struct console {
    struct cli *cli;
    const struct settings *settings;
    struct buffer database; /* independent of the working folder */
    int exit_code;
};

/* --- the settings as the table that core.host takes ---------------------- */

static void set_string(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static void set_boolean(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

static void set_seconds(lua_State *L, const char *key, int64_t us)
{
    set_number(L, key, (double)us / (double)CLOCK_SECOND);
}

static void push_limits(lua_State *L, const struct settings *settings)
{
    lua_newtable(L);
    set_seconds(L, "time", settings->limit_time_us);
    set_number(L, "memory", (double)settings->limit_memory);
    set_number(L, "payload", (double)settings->limit_payload);
    lua_setfield(L, -2, "limits");
}

static void push_grants(lua_State *L, const struct settings *settings)
{
    lua_newtable(L);
    for (int i = 0; settings->grants[i] != NULL; i++) {
        lua_pushstring(L, settings->grants[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "grants");
}

/* Every table by its whole name, so the prefix is in it already. */
static void push_schema(lua_State *L, const struct settings *settings)
{
    const struct names *names = &settings->names;

    lua_newtable(L);
    set_boolean(L, "create", settings->schema_create);
    lua_newtable(L);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        size_t len = strlen(names->fill[i].placeholder) - strlen("_table");

        lua_pushlstring(L, names->fill[i].placeholder, len);
        lua_pushstring(L, names->table[i]);
        lua_rawset(L, -3);
    }
    lua_setfield(L, -2, "tables");
    lua_newtable(L);
    for (size_t i = 0; i < names->naggregates; i++) {
        lua_newtable(L);
        set_string(L, "events", names->aggregates[i].events);
        if (names->aggregates[i].snapshots[0] != '\0')
            set_string(L, "snapshots", names->aggregates[i].snapshots);
        lua_setfield(L, -2, names->aggregates[i].aggregate_type);
    }
    lua_setfield(L, -2, "aggregates");
    lua_setfield(L, -2, "schema");
}

static void push_configuration(lua_State *L, const struct console *console)
{
    const struct settings *settings = console->settings;

    lua_newtable(L);
    set_string(L, "database", console->database.data);
    set_string(L, "scripts", settings->scripts);
    set_number(L, "partitions", settings->partitions);
    set_number(L, "batch", settings->batch);
    set_boolean(L, "jit", settings->jit);
    set_seconds(L, "clock_offset", settings->clock_offset_us);
    push_limits(L, settings);
    push_grants(L, settings);
    push_schema(L, settings);
}

/* --- the prompt ---------------------------------------------------------- */

/* status([consumer]): what the verb prints */
static int console_status(lua_State *L)
{
    struct cli *cli = lua_touserdata(L, lua_upvalueindex(1));
    const char *consumer = luaL_optstring(L, 1, NULL);
    char *args[] = {(char *)consumer, NULL};
    char **args_before = cli->args;
    int nargs_before = cli->nargs;
    struct diag diag;
    enum status status;

    cli->args = args;
    cli->nargs = consumer != NULL ? 1 : 0;
    status = cli_status(cli, &diag);
    cli->args = args_before;
    cli->nargs = nargs_before;
    if (status != STATUS_OK)
        return luaL_error(L, "%s", diag.message);
    return 0;
}

static int run_console(lua_State *L)
{
    struct console *console = lua_touserdata(L, 1);

    lua_getglobal(L, "require");
    lua_pushstring(L, "moontide.console");
    lua_call(L, 1, 1);

    lua_getglobal(L, "require");
    lua_pushstring(L, "moontide.core");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "host");
    push_configuration(L, console);
    lua_pushstring(L, console->settings->app_dir);
    lua_pushboolean(L, 1); /* looking at a halted consumer must not start it */
    lua_call(L, 3, 1);
    lua_remove(L, -2);

    lua_pushlightuserdata(L, console->cli);
    lua_pushcclosure(L, console_status, 1);
    lua_pushboolean(L, isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1);
    lua_call(L, 3, 1);
    console->exit_code = (int)lua_tointeger(L, -1);
    return 0;
}

enum status cli_console(struct cli *cli, struct diag *diag)
{
    struct console console = {.cli = cli, .database = BUFFER_EMPTY};
    struct lua_runtime runtime = {.body = run_console, .arg = &console};
    char *here;
    enum status status = cli_settings(cli, &console.settings, diag);

    if (status != STATUS_OK)
        return status;
    here = getcwd(NULL, 0);
    if (here == NULL)
        return diag_set(diag, STATUS_FAILED, "no working folder: %s",
                        strerror(errno));
    db_url_resolve(console.settings->database, here, &console.database);
    free(here);
    status = lua_runtime_run(&runtime, diag);
    if (status == STATUS_OK)
        cli->exit_code = console.exit_code;
    buffer_free(&console.database);
    return status;
}
