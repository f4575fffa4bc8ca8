#include "base/clock.h"
#include "script/lua_call.h"
#include "script/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* An application in a folder of its own, beside a file it must not reach. */
struct application {
    char root[128]; /* holds app/ and outside.lua */
    char app[256];
    struct script_state *state;
};

static const struct {
    const char *path; /* below root; ends with "/": a folder */
    const char *text;
} files[] = {
    {"app/", NULL},
    {"app/handlers/", NULL},
    {"app/handlers/lib/", NULL},
    {"app/handlers/lib/deep/", NULL},
    {"app/lib/", NULL},
    {"app/handlers/lib/money.lua", "return { name = (...) }"},
    {"app/handlers/lib/deep/init.lua", "return 'deep'"},
    {"app/lib/shared.lua", "return 'shared'"},
    {"app/lib/money.lua", "return 'not this one'"},
    {"app/lib/nothing.lua", "local x = 1"},
    {"app/lib/broken.lua", "local x\nx = = 1"},
    {"app/lib/raises.lua", "\nerror('no luck')"},
    {"app/lib/leaks.lua", "leaked = 1"},
    {"app/lib/first.lua", "return require 'lib.second'"},
    {"app/lib/second.lua", "return require 'lib.first'"},
    {"app/lib/code.lua", "\033LJ\2"},
    {"app/lib/hangs.lua", "while true do end"},
    {"outside.lua", "return 'outside'"},
};

static void path_of(const struct application *app, const char *name,
                    char out[256])
{
    (void)snprintf(out, 256, "%s/%s", app->root, name);
}

static int open_application(void **state)
{
    struct application *app = calloc(1, sizeof(*app));
    struct state_options options = {
        .time_us = CLOCK_SECOND / 5,
        .memory = INT64_C(16) << 20,
        .scripts = "handlers",
    };
    char path[256];
    char target[256];

    assert_non_null(app);
    (void)snprintf(app->root, sizeof(app->root), "%s/lua_require_test.XXXXXX",
                   getenv("TMPDIR") != NULL ? getenv("TMPDIR") : P_tmpdir);
    assert_non_null(mkdtemp(app->root));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        FILE *out;

        path_of(app, files[i].path, path);
        if (files[i].text == NULL) {
            assert_int_equal(mkdir(path, 0700), 0);
            continue;
        }
        out = fopen(path, "w");
        assert_non_null(out);
        assert_true(fputs(files[i].text, out) >= 0);
        assert_int_equal(fclose(out), 0);
    }
    path_of(app, "outside.lua", target);
    path_of(app, "app/lib/link.lua", path);
    assert_int_equal(symlink(target, path), 0);
    path_of(app, "app", app->app);
    options.app_dir = app->app;
    if (script_state_open(&options, &app->state, NULL) != STATUS_OK)
        return -1;
    *state = app;
    return 0;
}

static int close_application(void **state)
{
    struct application *app = *state;
    char path[256];

    script_state_close(app->state);
    path_of(app, "app/lib/link.lua", path);
    (void)unlink(path);
    for (size_t i = sizeof(files) / sizeof(files[0]); i-- > 0;) {
        path_of(app, files[i].path, path);
        (void)(files[i].text == NULL ? rmdir(path) : unlink(path));
    }
    (void)rmdir(app->root);
    free(app);
    return 0;
}

static enum lua_outcome run(struct application *app, const char *source,
                            struct lua_failure *failure)
{
    struct diag diag;

    if (lua_call_load(app->state->L, text_of(source), "handlers/x.lua",
                      &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    return lua_call_protected(app->state->L, 0, 0, failure);
}

static void run_well(struct application *app, const char *source)
{
    struct lua_failure failure;

    if (run(app, source, &failure) != LUA_CALL_OK)
        fail_msg("%s", failure.message);
}

static void expect_error(struct application *app, const char *source,
                         const char *message)
{
    struct lua_failure failure;

    assert_int_equal(run(app, source, &failure), LUA_CALL_ERROR);
    assert_string_equal(failure.message, message);
}

static void
files_are_found_below_scripts_then_below_the_application(void **state)
{
    run_well(*state, "assert(require('lib.money').name == 'lib.money')\n"
                     "assert(require('lib.shared') == 'shared')\n"
                     "assert(require('lib.deep') == 'deep')\n"
                     "assert(require('lib.nothing') == true)");
}

static void a_module_is_loaded_once_per_state(void **state)
{
    run_well(*state, "assert(require('lib.money') == require('lib.money'))");
    run_well(*state, "require('lib.money').mark = 1");
    run_well(*state, "assert(require('lib.money').mark == 1)");
}

static void faults_of_a_module_name_it_and_who_requires_it(void **state)
{
    expect_error(*state, "\nrequire 'lib.broken'",
                 "handlers/x.lua:2: require \"lib.broken\": lib/broken.lua:2:"
                 " unexpected symbol near '='");
    expect_error(*state, "\nrequire 'lib.raises'",
                 "handlers/x.lua:2: require \"lib.raises\": lib/raises.lua:2:"
                 " no luck");
    expect_error(*state, "require 'lib.leaks'",
                 "handlers/x.lua:1: require \"lib.leaks\": lib/leaks.lua:1:"
                 " assignment to global 'leaked' (declare it with local)");
    expect_error(*state, "require 'lib.mony'",
                 "handlers/x.lua:1: require \"lib.mony\": there is neither"
                 " handlers/lib/mony.lua nor lib/mony.lua in the application");
    expect_error(*state, "require 'lib.code'",
                 "handlers/x.lua:1: require \"lib.code\": lib/code.lua: is"
                 " bytecode; scripts are Lua text");
    /* a module that failed is tried again, not taken as loaded */
    expect_error(*state, "pcall(require, 'lib.raises') require 'lib.raises'",
                 "handlers/x.lua:1: require \"lib.raises\": lib/raises.lua:2:"
                 " no luck");
}

static void modules_that_require_each_other_are_an_error(void **state)
{
    struct lua_failure failure;

    assert_int_equal(run(*state, "require 'lib.first'", &failure),
                     LUA_CALL_ERROR);
    assert_non_null(
        strstr(failure.message, "require \"lib.first\": it is being loaded"));
}

static void a_module_that_hangs_ends_at_the_time_limit(void **state)
{
    struct lua_failure failure;

    assert_int_equal(run(*state, "pcall(require, 'lib.hangs')", &failure),
                     LUA_CALL_TIMEOUT);
    assert_string_equal(failure.message,
                        "lib/hangs.lua:1: handler ran longer than limits.time"
                        " = 200ms");
}

static void names_lead_nowhere_else(void **state)
{
    static const char *const names[] = {
        "../outside",   "..outside",      "/etc/passwd", "lib/money",
        "lib..money",   ".lib.money",     "lib.money.",  "",
        "lib.money\\0", "lib.\\195\\164", "lib money",   "lib.%2e%2e.outside",
    };
    struct lua_failure failure;
    char source[96];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(source, sizeof(source), "require '%s'", names[i]);
        assert_int_equal(run(*state, source, &failure), LUA_CALL_ERROR);
        assert_non_null(strstr(failure.message, "a module is named by words"));
    }
    expect_error(*state, "require(('a'):rep(1e5))",
                 "handlers/x.lua:1: require: the name is too long");
    expect_error(*state, "require 'lib.link'",
                 "handlers/x.lua:1: require \"lib.link\": the file lies outside"
                 " of the application");
}

static void cjson_is_loaded_when_asked_for_and_locked(void **state)
{
    struct lua_failure failure;

    if (run(*state,
            "local cjson = require 'cjson'\n"
            "assert(cjson.decode('[1]')[1] == 1)\n"
            "assert(require 'cjson' == cjson)\n"
            "assert(not pcall(function() cjson.decode = nil end))",
            &failure) != LUA_CALL_OK)
        assert_non_null(strstr(failure.message, "install the package"
                                                " lua-cjson"));
}

static void a_missing_scripts_folder_is_named(void **state)
{
    const struct application *app = *state;
    const struct script_options options = {
        .app_dir = app->app,
        .scripts = "handler",
        .dialect = "sqlite",
        .limits = {.time_us = CLOCK_SECOND,
                   .memory = INT64_C(16) << 20,
                   .payload = 1024},
    };
    struct script *script = NULL;
    struct diag diag;

    assert_int_equal(script_open(&options, &script, &diag), STATUS_CONFIG);
    assert_non_null(strstr(diag.message, "the scripts folder"));
    assert_non_null(strstr(diag.message, "/app/handler\""));
    assert_null(script);
}

#define APPLICATION_TEST(name)                                                 \
    cmocka_unit_test_setup_teardown(name, open_application, close_application)

int main(void)
{
    const struct CMUnitTest tests[] = {
        APPLICATION_TEST(
            files_are_found_below_scripts_then_below_the_application),
        APPLICATION_TEST(a_module_is_loaded_once_per_state),
        APPLICATION_TEST(faults_of_a_module_name_it_and_who_requires_it),
        APPLICATION_TEST(modules_that_require_each_other_are_an_error),
        APPLICATION_TEST(a_module_that_hangs_ends_at_the_time_limit),
        APPLICATION_TEST(names_lead_nowhere_else),
        APPLICATION_TEST(cjson_is_loaded_when_asked_for_and_locked),
        APPLICATION_TEST(a_missing_scripts_folder_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
