#include "cli/cli.h"
#include "cli/lua_runtime.h"

#include <errno.h>
#include <lauxlib.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct test_run {
    char **arguments;
    const char *scripts; /* the application's folder of declarations */
    int exit_code;
};

/* Specs belong to an application: they run in its folder. */
static enum status enter_folder(const char *config, struct diag *diag)
{
    const char *slash = config != NULL ? strrchr(config, '/') : NULL;
    char folder[PATH_MAX];
    size_t len;

    if (slash == NULL)
        return STATUS_OK;
    len = slash == config ? 1 : (size_t)(slash - config);
    if (len >= sizeof(folder))
        return diag_set(diag, STATUS_USAGE, "the path of --config is too long");
    memcpy(folder, config, len);
    folder[len] = '\0';
    if (chdir(folder) != 0)
        return diag_set(diag, STATUS_CONFIG, "cannot enter %s: %s", folder,
                        strerror(errno));
    return STATUS_OK;
}

/* The testing kit takes its database from DATABASE_URL. */
static enum status pass_database(const char *database, struct diag *diag)
{
    if (database != NULL && setenv("DATABASE_URL", database, 1) != 0)
        return diag_set(diag, STATUS_FAILED, "cannot set DATABASE_URL: %s",
                        strerror(errno));
    return STATUS_OK;
}

static int run_specs(lua_State *L)
{
    struct test_run *run = lua_touserdata(L, 1);

    lua_runtime_set_arg(L, "busted", run->arguments);
    lua_runtime_search(L, run->scripts);
    lua_getglobal(L, "require");
    lua_pushstring(L, "moontide.specs");
    lua_call(L, 1, 1);
    lua_call(L, 0, 1);
    run->exit_code = lua_tointeger(L, -1) & 0xff;
    return 0;
}

static int run_file(lua_State *L)
{
    struct test_run *run = lua_touserdata(L, 1);
    int count = 0;

    lua_runtime_set_arg(L, run->arguments[0], run->arguments + 1);
    if (luaL_loadfile(L, run->arguments[0]) != 0)
        return lua_error(L);
    while (run->arguments[count + 1] != NULL)
        lua_pushstring(L, run->arguments[++count]);
    lua_call(L, count, 0);
    return 0;
}

enum status cli_test(struct cli *cli, struct diag *diag)
{
    char *none[] = {NULL};
    struct test_run run = {
        .arguments = cli->nargs > 0 ? cli->args : none,
    };
    struct lua_runtime runtime = {.body = run_specs, .arg = &run};
    const struct settings *settings;
    enum status status = cli_settings(cli, &settings, diag);

    if (status == STATUS_OK)
        status = enter_folder(cli->config, diag);
    if (status == STATUS_OK)
        status = pass_database(cli->database, diag);
    if (status != STATUS_OK)
        return status;
    run.scripts = settings->scripts;
    signal(SIGPIPE, SIG_DFL); /* programs that specs start expect it */
    status = lua_runtime_run(&runtime, diag);
    if (status == STATUS_OK)
        cli->exit_code = run.exit_code;
    return status;
}

enum status cli_lua(struct cli *cli, struct diag *diag)
{
    struct test_run run = {.arguments = cli->args};
    struct lua_runtime runtime = {.body = run_file, .arg = &run};

    signal(SIGPIPE, SIG_DFL);
    return lua_runtime_run(&runtime, diag);
}
