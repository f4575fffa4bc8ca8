#include "base/buffer.h"
#include "base/clock.h"
#include "script/lua_call.h"
#include "script/state.h"

#include <luajit.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct script_state *open_with(const struct state_options *options)
{
    struct script_state *state = NULL;
    struct diag diag;

    if (script_state_open(options, &state, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    return state;
}

static int open_state(void **out)
{
    const struct state_options options = {
        .time_us = CLOCK_SECOND / 10,
        .memory = INT64_C(16) << 20,
    };

    *out = open_with(&options);
    return 0;
}

static int close_state(void **out)
{
    script_state_close(*out);
    return 0;
}

/* Loads and calls a chunk; what it returns stays on the stack. */
static enum lua_outcome run(struct script_state *state, const char *source,
                            struct lua_failure *failure)
{
    struct diag diag;

    lua_settop(state->L, 0);
    if (lua_call_load(state->L, text_of(source), "handlers/x.lua", &diag) !=
        STATUS_OK)
        fail_msg("%s", diag.message);
    return lua_call_protected(state->L, 0, LUA_MULTRET, failure);
}

static void run_well(struct script_state *state, const char *source)
{
    struct lua_failure failure;

    if (run(state, source, &failure) != LUA_CALL_OK)
        fail_msg("%s", failure.message);
}

static void expect(struct script_state *state, const char *source,
                   enum lua_outcome outcome, const char *message)
{
    struct lua_failure failure;

    assert_int_equal(run(state, source, &failure), outcome);
    assert_string_equal(failure.message, message);
    assert_int_equal(lua_gettop(state->L), 0);
    run_well(state, "return 1"); /* the state survived */
}

#define TIME_TEXT   "handler ran longer than limits.time = 100ms"
#define MEMORY_TEXT "handler needed more than limits.memory = 16MiB"

static void endless_code_fails_by_time(void **state)
{
    static const char *const hostile[] = {
        "while true do end",
        "local n = 0 for i = 1, 300 do n = n + i end for i = 1, 1e18 do end",
        "local function f() return f() end f()",
        "while true do pcall(function() while true do end end) end",
        "repeat local ok = pcall(error) until ok",
        "coroutine.wrap(function() coroutine.wrap(function()"
        " while true do end end)() end)()",
        "while true do coroutine.resume(coroutine.create(function()"
        " while true do end end)) end",
        "for i = 1, 1e9 do coroutine.create(print) end",
        "xpcall(function() error('x') end, function() while true do end end)"
        " while true do end",
        "local t = setmetatable({}, { __index = function(t, k)"
        " while true do end end }) return t.x",
        "table.sort({ 3, 1, 2 }, function() while true do end end)",
        "('x'):gsub('x', function() while true do end end)",
        "local t = {} for i = 1, 1e12 do t[1] = ('x'):rep(100) end",
        "return pcall(function() while true do end end)",
    };
    struct lua_failure failure;

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        if (run(*state, hostile[i], &failure) != LUA_CALL_TIMEOUT)
            fail_msg("%s: %s", hostile[i], failure.message);
        assert_string_equal(failure.message, "handlers/x.lua:1: " TIME_TEXT);
        run_well(*state, "local n = 0 for i = 1, 1e5 do n = n + 1 end");
    }
}

static void the_line_that_ran_too_long_is_named(void **state)
{
    expect(*state, "local x = 1\n\nwhile x do\n\nend\n", LUA_CALL_TIMEOUT,
           "handlers/x.lua:3: " TIME_TEXT);
}

static int64_t processor_time(void)
{
    struct timespec used;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
    return used.tv_sec * CLOCK_SECOND + used.tv_nsec / 1000;
}

struct hostile {
    const char *prepare, *work;
    int rounds; /* fewer than the clock is not looked at for; 0: it is at once
                 */
};

/* What one gap between two looks costs at least, here and now. */
static int64_t time_of_gap(struct script_state *script,
                           const struct hostile *hostile)
{
    int64_t limit = script->limits.time_us;
    int64_t start;
    char source[200];

    (void)snprintf(source, sizeof(source), "%s for i = 1, %d do %s end",
                   hostile->prepare, hostile->rounds, hostile->work);
    script->limits.time_us = 600 * CLOCK_SECOND;
    start = processor_time();
    run_well(script, source);
    script->limits.time_us = limit;
    return processor_time() - start;
}

/* Long C functions leave gaps between two looks at the clock, too: work in one
 * may end late by that gap, of which a deadline that moved would add ten. */
static void work_never_moves_the_deadline(void **state)
{
    static const struct hostile hostile[] = {
        {"", "", 0},
        {"", "pcall(error)", 0},
        {"local t = ('x'):rep(1e6)", "t:find('.-y')", 0},
        {"local s = ('x'):rep(3e6)", "s:upper():reverse()", 100},
        {"local s = ('x'):rep(3e6)", "local t = s .. 'y'", 100},
        {"local t = {('x'):rep(2e6)}", "table.concat(t, 1)", 100},
    };
    static const char sorting[] =
        "local t = {} for i = 1, 4e5 do t[i] = i * 7919 % 400009 end\n"
        "while true do table.sort(t) end";
    struct script_state *script = *state;
    struct lua_failure failure;
    int64_t start;

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        int64_t most = script->limits.time_us + 200 * 1000;
        char source[200];

        if (hostile[i].rounds > 0)
            most += 4 * time_of_gap(script, &hostile[i]);
        (void)snprintf(source, sizeof(source), "%s while true do %s end",
                       hostile[i].prepare, hostile[i].work);
        start = processor_time();
        assert_int_equal(run(script, source, &failure), LUA_CALL_TIMEOUT);
        if (processor_time() - start > most)
            fail_msg("%s: took %lld us, more than %lld", source,
                     (long long)(processor_time() - start), (long long)most);
    }
    /* one sort may end after the limit, the next one must not begin */
    script->limits.memory = (size_t)64 << 20;
    start = processor_time();
    assert_int_equal(run(script, sorting, &failure), LUA_CALL_TIMEOUT);
    assert_true(processor_time() - start < 4 * CLOCK_SECOND);
}

static int stop_process(lua_State *L)
{
    (void)L;
    (void)raise(SIGSTOP);
    return 0;
}

static int wait_in_vain(lua_State *L)
{
    (void)poll(NULL, 0, 150);
    limits_spent(L);
    return 0;
}

static int push_waits(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, script_state_of(L)->globals_ref);
    lua_pushcfunction(L, stop_process);
    lua_setfield(L, -2, "stop");
    lua_pushcfunction(L, wait_in_vain);
    lua_setfield(L, -2, "wait");
    return 0;
}

/* The outcome of the chunk in a process that stops when it calls stop(), and
 * goes on only when its limits.time is over. */
static enum lua_outcome run_stopped(const char *source)
{
    const struct state_options options = {
        .time_us = CLOCK_SECOND / 2,
        .memory = INT64_C(16) << 20,
    };
    pid_t child = fork();
    int64_t end;
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct script_state *script = open_with(&options);
        struct lua_failure failure;

        if (lua_call_run(script, push_waits, NULL, &failure) != LUA_CALL_OK)
            _exit(100);
        _exit((int)run(script, source, &failure));
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    end = clock_monotonic() + 2 * options.time_us;
    while (clock_monotonic() < end)
        (void)poll(NULL, 0, 10);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum lua_outcome)WEXITSTATUS(status);
}

static void a_stopped_process_has_its_whole_time(void **state)
{
    (void)state;
    assert_int_equal(run_stopped("for i = 1, 1e5 do end stop()"
                                 " for i = 1, 1e6 do end"),
                     LUA_CALL_OK);
    assert_int_equal(run_stopped("stop() while true do end"), LUA_CALL_TIMEOUT);
}

static void time_that_the_host_waited_for_a_script_counts(void **state)
{
    struct script_state *script = *state;
    struct lua_failure failure;

    assert_int_equal(lua_call_run(script, push_waits, NULL, &failure),
                     LUA_CALL_OK);
    assert_int_equal(run(script, "wait() for i = 1, 1e6 do end", &failure),
                     LUA_CALL_TIMEOUT);
}

static void memory_bombs_fail_by_memory(void **state)
{
    static const char *const hostile[] = {
        "local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "return ('x'):rep(1e7) .. ('y'):rep(1e7)",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "local t = {} while true do"
        " t[#t + 1] = coroutine.wrap(function() end) end",
        "return table.new(1e8, 0)",
        "pcall(function() local s = 'x' while true do s = s .. s end end)"
        " return 1",
    };
    struct lua_failure failure;

    ((struct script_state *)*state)->limits.time_us = 20 * CLOCK_SECOND;
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        if (run(*state, hostile[i], &failure) != LUA_CALL_MEMORY)
            fail_msg("%s: %s", hostile[i], failure.message);
        assert_string_equal(failure.message, MEMORY_TEXT);
        run_well(*state, "return ('x'):rep(1e6)");
    }
}

/* Pages of this process in memory. */
static long resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0;
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &size, &pages), 2);
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void a_thousand_memory_bombs_leave_memory_flat(void **state)
{
    static const char bomb[] = "local t = {} while true do"
                               " t[#t + 1] = ('x'):rep(1e5) .. #t end";
    struct script_state *script = *state;
    struct lua_failure failure;
    size_t used = 0;
    long before = 0;

    script->limits.time_us = 20 * CLOCK_SECOND;
    script->limits.memory = (size_t)2 << 20;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(run(script, bomb, &failure), LUA_CALL_MEMORY);
        if (i == 20) {
            before = resident();
            used = script->limits.used;
        }
    }
    assert_true(resident() < before + 4096);
    assert_true(script->limits.used < used + 65536);
}

static void what_is_raised_becomes_text(void **state)
{
    static const struct {
        const char *source;
        const char *message;
    } cases[] = {
        {"error('no')", "handlers/x.lua:1: no"},
        {"\n\nerror('no')", "handlers/x.lua:3: no"},
        {"error('no', 0)", "handlers/x.lua:1: no"},
        {"error(nil)", "handlers/x.lua:1: error value is nil"},
        {"error(false)", "handlers/x.lua:1: error value is false"},
        {"error(12)", "handlers/x.lua:1: 12"},
        {"error({})", "handlers/x.lua:1: error value is table"},
        {"error({ message = 'no money' })", "handlers/x.lua:1: no money"},
        {"error(setmetatable({}, { __tostring = function()"
         " return 'own' end }))",
         "handlers/x.lua:1: own"},
        {"error(setmetatable({}, { __tostring = function()"
         " error('again') end }))",
         "handlers/x.lua:1: error value whose __tostring gives no text"},
        {"error(setmetatable({}, { __tostring = function()"
         " return {} end }))",
         "handlers/x.lua:1: error value whose __tostring gives no text"},
        {"error(print)", "handlers/x.lua:1: error value is function"},
        {"error('a\\0b\\255c')", "handlers/x.lua:1: a?b?c"},
        {"local t = nil\nt.x = 1",
         "handlers/x.lua:2: attempt to index local 't' (a nil value)"},
        {"coroutine.wrap(function() error('deep') end)()",
         "handlers/x.lua:1: handlers/x.lua:1: deep"},
        {"os.exit(1)",
         "handlers/x.lua:1: attempt to index global 'os' (a nil value)"
         " (scripts do not see this library unless grants in"
         " moontide.conf.lua names it)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(*state, cases[i].source, LUA_CALL_ERROR, cases[i].message);
    /* the text is asked for within the time of the call */
    expect(*state,
           "error(setmetatable({}, { __tostring = function()"
           " while true do end end }))",
           LUA_CALL_TIMEOUT, "handlers/x.lua:1: " TIME_TEXT);
}

static void a_long_error_is_cut_to_a_thousand_characters(void **state)
{
    struct script_state *script = *state;
    struct lua_failure failure;

    script->limits.memory = (size_t)64 << 20;
    assert_int_equal(run(*state, "error(('x'):rep(5e6))", &failure),
                     LUA_CALL_ERROR);
    assert_int_equal(strlen(failure.message), 1000);
    assert_int_equal(run(*state, "error(('\\195\\164'):rep(1e6))", &failure),
                     LUA_CALL_ERROR);
    assert_int_equal(text_utf8_length(text_of(failure.message)), 1000);
    assert_true(text_utf8_valid(text_of(failure.message)));
    /* a table of a million things is not printed */
    assert_int_equal(run(*state,
                         "local t = {} for i = 1, 1e5 do t[i] = i end error(t)",
                         &failure),
                     LUA_CALL_ERROR);
    assert_string_equal(failure.message,
                        "handlers/x.lua:1: error value is table");
}

static int fail_in_database(lua_State *L)
{
    static const struct diag diag = {
        .status = STATUS_UNIQUE,
        .message = "UNIQUE constraint failed: accounts.iban",
        .constraint = "accounts.iban",
    };

    return lua_call_raise_host(L, &diag);
}

static int nested(lua_State *L)
{
    struct lua_failure failure;
    enum lua_outcome outcome;

    lua_settop(L, 1);
    outcome = lua_call_protected(L, 0, 0, &failure);
    if (outcome != LUA_CALL_OK && outcome != LUA_CALL_ERROR &&
        outcome != LUA_CALL_HOST)
        return lua_call_raise_failure(L, &failure);
    lua_pushinteger(L, outcome);
    return 1;
}

static int push_host_globals(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, script_state_of(L)->globals_ref);
    lua_pushcfunction(L, fail_in_database);
    lua_setfield(L, -2, "fail");
    lua_pushcfunction(L, nested);
    lua_setfield(L, -2, "try");
    return 0;
}

static const char *const deep[] = {
    "local function f() return 1 + f() end f()",
    "local t = {} setmetatable(t, { __index = function(_, k)"
    " return t[k] .. 'x' end }) return t.x",
    "local function f() return (('x'):gsub('x', f)) end f()",
    "local t = {} setmetatable(t, { __index = function(_, k)"
    " return (('x'):gsub('x', t)) end }) return t.x",
    "local function f() table.sort({ 1, 2 }, f) end f()",
    "local function f() coroutine.wrap(f)() end f()",
    "local function f() local ok, why = coroutine.resume("
    "coroutine.create(f)) if not ok then error(why, 0) end end f()",
    "local t = {} setmetatable(t, { __tostring = function()"
    " return ('%s'):format(t) end }) return tostring(t)",
    "local t = {} setmetatable(t, { __tostring = function()"
    " print(t) return 'x' end }) print(t)",
    "local function f() try(f) error('deep') end f()",
};

static void deep_recursion_is_an_error(void **state)
{
    struct script_state *script = *state;
    struct lua_failure failure;

    script->limits.time_us = 20 * CLOCK_SECOND;
    script->limits.memory = (size_t)512 << 20;
    assert_int_equal(lua_call_run(script, push_host_globals, NULL, &failure),
                     LUA_CALL_OK);
    for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
        enum lua_outcome outcome = run(script, deep[i], &failure);

        /* memory: coroutine.wrap adds a position at every level it leaves */
        if (outcome != LUA_CALL_ERROR && outcome != LUA_CALL_MEMORY)
            fail_msg("%s: %s", deep[i], failure.message);
        run_well(script, "return 1");
    }
}

/* A stack's size counts when a program starts. */
static void deep_recursion_is_an_error_on_a_small_stack(void **state)
{
    static const rlim_t sizes[] = {4096, 1024, 256};
    int status;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct rlimit stack = {.rlim_cur = sizes[i] << 10};
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            stack.rlim_max = stack.rlim_cur;
            if (setrlimit(RLIMIT_STACK, &stack) == 0)
                (void)execl("/proc/self/exe", "script_state_test", "deep",
                            (char *)NULL);
            _exit(100);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%d KiB: status %d", (int)sizes[i], status);
    }
}

/* Each level catches the error of the level below and goes down again. */
static void deep_recursion_that_is_caught_ends_at_the_time_limit(void **state)
{
    static const char *const hostile[] = {
        "local function f() while true do pcall(coroutine.wrap(f)) end end"
        " f()",
        "local function f() while true do pcall(string.gsub, 'x', 'x', f) end"
        " end f()",
        "local function f() while true do pcall(f) end end f()",
        "local function f() while true do xpcall(f, print) end end f()",
    };
    struct script_state *script = *state;
    struct lua_failure failure;

    script->limits.memory = (size_t)512 << 20;
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        if (run(script, hostile[i], &failure) != LUA_CALL_TIMEOUT)
            fail_msg("%s: %s", hostile[i], failure.message);
        run_well(script, "return 1");
    }
}

static void a_handler_may_not_yield(void **state)
{
    static const char *const hostile[] = {
        "coroutine.yield()",
        "pcall(coroutine.yield) coroutine.yield(1)",
        "coroutine.wrap(table.sort)({ 2, 1 }, coroutine.yield)",
        "coroutine.wrap(function() ('x'):gsub('x', coroutine.yield) end)()",
    };
    struct lua_failure failure;

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        assert_int_equal(run(*state, hostile[i], &failure), LUA_CALL_ERROR);
        assert_non_null(strstr(failure.message, "handlers/x.lua:1: "));
        assert_non_null(strstr(failure.message, "a handler may not yield"));
    }
    run_well(*state, "local f = coroutine.wrap(function() for i = 1, 3 do"
                     " pcall(coroutine.yield, i) end end)\n"
                     "assert(f() == 1 and f() == 2)");
}

static int push_permanent_global(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, script_state_of(L)->globals_ref);
    lua_pushcfunction(L, lua_call_permanent);
    lua_setfield(L, -2, "permanent");
    return 0;
}

static void permanent_errors_are_told_apart(void **state)
{
    struct lua_failure failure;

    assert_int_equal(
        lua_call_run(*state, push_permanent_global, NULL, &failure),
        LUA_CALL_OK);
    expect(*state, "local f = permanent\nerror(f('no such account'))",
           LUA_CALL_PERMANENT, "handlers/x.lua:2: no such account");
    expect(*state,
           "local ok, e = pcall(function()\nerror(permanent('x'))\nend)"
           "\nerror(e)",
           LUA_CALL_PERMANENT, "handlers/x.lua:2: x");
    expect(*state, "error(tostring(permanent('x')), 0)", LUA_CALL_ERROR,
           "handlers/x.lua:1: x");
    expect(*state,
           "error(setmetatable({ message = 'x' }, getmetatable("
           "permanent('y')) or nil))",
           LUA_CALL_ERROR, "handlers/x.lua:1: x");
}

static void an_error_of_the_database_cannot_be_swallowed(void **state)
{
    static const char *const cases[] = {
        "fail()",
        "pcall(fail)",
        "pcall(fail) error('other')",
        "pcall(fail) try(function() end)",
        "coroutine.resume(coroutine.create(fail))",
    };
    struct lua_failure failure;

    assert_int_equal(lua_call_run(*state, push_host_globals, NULL, &failure),
                     LUA_CALL_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run(*state, cases[i], &failure), LUA_CALL_HOST);
        assert_int_equal(failure.host.status, STATUS_UNIQUE);
        assert_string_equal(failure.host.constraint, "accounts.iban");
        assert_string_equal(failure.message,
                            "UNIQUE constraint failed: accounts.iban");
        run_well(*state, "return 1");
    }
    run_well(*state, "local ok, why = try(fail)"); /* a nested call takes it */
    run_well(*state, "return coroutine.wrap(function() try(fail) end)()");
}

static void the_limit_of_an_inner_call_is_that_of_the_outer(void **state)
{
    struct lua_failure failure;

    assert_int_equal(lua_call_run(*state, push_host_globals, NULL, &failure),
                     LUA_CALL_OK);
    expect(*state, "while true do try(function() end) end", LUA_CALL_TIMEOUT,
           "handlers/x.lua:1: " TIME_TEXT);
    expect(*state, "try(function() while true do end end)", LUA_CALL_TIMEOUT,
           "handlers/x.lua:1: " TIME_TEXT);
    expect(*state, "pcall(try, function() while true do end end)",
           LUA_CALL_TIMEOUT, "handlers/x.lua:1: " TIME_TEXT);
    expect(*state, "try(function() error('inner') end) error('outer')",
           LUA_CALL_ERROR, "handlers/x.lua:1: outer");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Appends the sorted names in the table on the top, which is popped. */
static void add_names(lua_State *L, struct buffer *out)
{
    const char *names[64];
    size_t count = 0;

    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        assert_int_equal(lua_type(L, -2), LUA_TSTRING);
        assert_true(count < 64);
        names[count++] = lua_tostring(L, -2);
    }
    qsort(names, count, sizeof(names[0]), compare_names);
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, " %s", names[i]);
    lua_pop(L, 1);
}

static void add_library(lua_State *L, struct buffer *out, const char *name)
{
    buffer_printf(out, "\n%s:", name);
    lua_getfield(L, -1, name);
    assert_int_equal(lua_getmetatable(L, -1), 1); /* it is locked */
    lua_getfield(L, -1, "__index");
    add_names(L, out);
    lua_pop(L, 2);
}

static void scripts_see_the_allowed_globals_only(void **state)
{
    static const char expected[] =
        "globals: _G _VERSION assert bit coroutine error getmetatable ipairs"
        " math next pairs pcall print rawequal rawget rawset require select"
        " setmetatable string table tonumber tostring type unpack xpcall\n"
        "bit: arshift band bnot bor bswap bxor lshift rol ror rshift tobit"
        " tohex\n"
        "coroutine: create isyieldable resume running status wrap yield\n"
        "math: abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp"
        " huge ldexp log log10 max min modf pi pow rad random randomseed sin"
        " sinh sqrt tan tanh\n"
        "string: byte char find format gmatch gsub len lower match rep reverse"
        " sub upper\n"
        "table: clear concat insert maxn new remove sort";
    struct script_state *script = *state;
    lua_State *L = script->L;
    struct buffer out = BUFFER_EMPTY;

    buffer_append_string(&out, "globals:");
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->globals_ref);
    lua_pushvalue(L, -1);
    add_names(L, &out);
    add_library(L, &out, "bit");
    add_library(L, &out, "coroutine");
    add_library(L, &out, "math");
    add_library(L, &out, "string");
    add_library(L, &out, "table");
    assert_string_equal(out.data, expected);
    buffer_free(&out);
}

static void what_is_locked_cannot_be_changed(void **state)
{
    static const struct {
        const char *source;
        const char *message;
    } cases[] = {
        {"local a\nfoo = 1", "handlers/x.lua:2: assignment to global 'foo'"
                             " (declare it with local)"},
        {"function helper() end",
         "handlers/x.lua:1: assignment to global 'helper'"
         " (declare it with local)"},
        {"string = nil", "handlers/x.lua:1: assignment to global 'string'"
                         " (declare it with local)"},
        {"_G.x = 1", "handlers/x.lua:1: assignment to global 'x'"
                     " (declare it with local)"},
        {"rawset(_G, 'x', 1)",
         "handlers/x.lua:1: rawset: this table is read-only"},
        {"rawset(string, 'x', 1)",
         "handlers/x.lua:1: rawset: this table is read-only"},
        {"string.find = print", "handlers/x.lua:1: string.find cannot be"
                                " assigned: the library is read-only"},
        {"setmetatable(_G, {})",
         "handlers/x.lua:1: cannot change a protected metatable"},
        {"setmetatable(math, nil)",
         "handlers/x.lua:1: cannot change a protected metatable"},
        {"math.randomseed(1)",
         "handlers/x.lua:1: math.randomseed: the host seeds math.random by"
         " the message, so that a replay gives the same"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(*state, cases[i].source, LUA_CALL_ERROR, cases[i].message);
    run_well(*state, "assert(getmetatable(_G) == false)\n"
                     "assert(getmetatable('') == false)\n"
                     "assert(getmetatable(string) == false)\n"
                     "assert(('x').dump == nil and string.dump == nil)\n"
                     "assert(rawget(string, 'find') == string.find)\n"
                     "assert(('x').find == string.find)\n"
                     "assert(_G._G == _G and rawget(_G, 'os') == nil)\n"
                     "assert(undefined == nil)");
}

static void dangerous_names_are_not_there(void **state)
{
    run_well(*state,
             "for name in ([[os io debug ffi jit package newproxy getfenv\n"
             "  setfenv collectgarbage load loadstring loadfile dofile module\n"
             "  gcinfo]]):gmatch('%a+') do\n"
             "  assert(_G[name] == nil, name)\n"
             "end\n"
             "for name in ('ffi jit os io debug package'):gmatch('%a+') do\n"
             "  local ok, why = pcall(require, name)\n"
             "  assert(not ok and why:find('grants', 1, true), name)\n"
             "end\n"
             "assert(require('string') == string)\n"
             "local x = 5LL\n" /* makes LuaJIT load ffi by itself */
             "assert(not pcall(require, 'ffi'))\n");
}

static void bytecode_is_refused(void **state)
{
    struct diag diag;
    struct script_state *script = *state;

    assert_int_equal(lua_call_load(script->L, TEXT_LITERAL("\033LJ\2\0"),
                                   "handlers/x.lua", &diag),
                     STATUS_CONFIG);
    assert_string_equal(diag.message,
                        "handlers/x.lua: is bytecode; scripts are Lua text");
    /* also behind the marks that LuaJIT skips */
    assert_int_equal(lua_call_load(script->L,
                                   TEXT_LITERAL("\xef\xbb\xbf\033LJ\2\0"),
                                   "handlers/x.lua", &diag),
                     STATUS_CONFIG);
    assert_int_equal(lua_call_load(script->L, TEXT_LITERAL("#!x\n\033LJ\2\0"),
                                   "handlers/x.lua", &diag),
                     STATUS_CONFIG);
}

static void a_syntax_error_has_file_and_line(void **state)
{
    struct diag diag;
    struct script_state *script = *state;

    assert_int_equal(lua_call_load(script->L, TEXT_LITERAL("local x\nx = = 1"),
                                   "handlers/x.lua", &diag),
                     STATUS_CONFIG);
    assert_string_equal(diag.message, "handlers/x.lua:2: unexpected symbol"
                                      " near '='");
    assert_int_equal(lua_gettop(script->L), 0);
}

static void huge_strings_are_refused(void **state)
{
    static const char *const hostile[] = {
        "return ('x'):rep(2^31)",        "return ('x'):rep(2^53)",
        "return string.rep('xy', 2^30)", "return string.rep('', 2^31, 'x')",
        "return ('x'):rep(1/0)",
    };
    struct lua_failure failure;

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        assert_int_equal(run(*state, hostile[i], &failure), LUA_CALL_ERROR);
        assert_non_null(strstr(failure.message, "string.rep: the result"));
    }
    run_well(*state, "assert((''):rep(1e300) == '')\n"
                     "assert(('x'):rep(-1) == '' and ('x'):rep(0/0) == '')\n"
                     "assert(('ab'):rep(2, '-') == 'ab-ab')");
}

static void random_numbers_follow_the_seed(void **state)
{
    struct script_state *script = *state;
    static const char draw[] =
        "local t = {} for i = 1, 5 do t[i] = math.random(1000) end\n"
        "return table.concat(t, ' ')";
    char first[64];

    script_state_seed(script, 42);
    run_well(script, draw);
    (void)snprintf(first, sizeof(first), "%s", lua_tostring(script->L, -1));
    run_well(script, draw);
    assert_string_not_equal(first, lua_tostring(script->L, -1));
    script_state_seed(script, 42);
    run_well(script, draw);
    assert_string_equal(first, lua_tostring(script->L, -1));
    run_well(script, "for i = 1, 1000 do\n"
                     "  local r = math.random()\n"
                     "  assert(r >= 0 and r < 1)\n"
                     "  local n = math.random(-2, 2)\n"
                     "  assert(n >= -2 and n <= 2 and n % 1 == 0)\n"
                     "end\n"
                     "assert(not pcall(math.random, 0))\n"
                     "assert(not pcall(math.random, 2, 1))");
}

static void the_engine_compiles_only_when_asked(void **state)
{
    static const char *const jit[] = {"jit", NULL};
    struct state_options options = {
        .time_us = CLOCK_SECOND,
        .memory = INT64_C(16) << 20,
        .grants = jit,
    };
    struct script_state *script;

    (void)state;
    script = open_with(&options);
    run_well(script, "assert(jit.status() == false)");
    script_state_close(script);
    options.jit = true;
    script = open_with(&options);
    run_well(script, "assert(jit.status() == true)");
    /* and it does compile */
    run_well(script, "local traces, n = 0, 0\n"
                     "jit.attach(function(what)\n"
                     "  if what == 'stop' then traces = traces + 1 end\n"
                     "end, 'trace')\n"
                     "for i = 1, 1e5 do n = n + i end\n"
                     "assert(traces > 0)");
    script_state_close(script);
}

static void grants_open_what_they_name(void **state)
{
    static const char *const some[] = {"os", "load", "ffi", NULL};
    static const char *const wrong[] = {"oss", NULL};
    struct state_options options = {
        .time_us = CLOCK_SECOND,
        .memory = INT64_C(16) << 20,
        .grants = some,
    };
    struct script_state *script;
    struct diag diag;

    (void)state;
    script = open_with(&options);
    run_well(script, "assert(os.time() > 0 and load and loadstring)\n"
                     "assert(require('ffi').new and require('os') == os)\n"
                     "assert(io == nil and debug == nil and ffi == nil)\n"
                     "assert(loadstring('x = 1') and\n"
                     "  not pcall(loadstring('x = 1')))");
    script_state_close(script);
    options.grants = wrong;
    assert_int_equal(script_state_open(&options, &script, &diag),
                     STATUS_CONFIG);
    assert_string_equal(diag.message,
                        "grants: unknown name \"oss\"; did you mean \"os\"?");
}

static void a_call_allocates_nothing(void **state)
{
    struct script_state *script = *state;
    struct lua_failure failure;
    size_t used;

    run_well(script, "return function() end");
    used = script->limits.used;
    for (int i = 0; i < 1000; i++) {
        lua_pushvalue(script->L, 1);
        assert_int_equal(lua_call_protected(script->L, 0, 0, &failure),
                         LUA_CALL_OK);
    }
    assert_true(script->limits.used == used);
}

static void a_state_too_small_is_an_error(void **state)
{
    const struct state_options options = {.time_us = CLOCK_SECOND,
                                          .memory = 8192};
    struct script_state *script = NULL;
    struct diag diag;

    (void)state;
    assert_int_equal(script_state_open(&options, &script, &diag), STATUS_LIMIT);
    assert_null(script);
}

static void a_state_opens_whole_or_not_at_all(void **state)
{
    struct state_options options = {.time_us = CLOCK_SECOND};
    int opened = 0;
    int refused = 0;

    (void)state;
    for (options.memory = 4096; options.memory < 96 * 1024;
         options.memory += 509) {
        struct script_state *script = NULL;
        struct diag diag;

        if (script_state_open(&options, &script, &diag) == STATUS_OK)
            opened++;
        else if (diag.status == STATUS_LIMIT)
            refused++;
        else
            fail_msg("%s", diag.message);
        script_state_close(script);
    }
    assert_true(opened > 10 && refused > 10);
}

/* The allocator says no a little later each time, so somewhere inside of every
 * function of the library. */
static void memory_may_end_anywhere(void **state)
{
    static const char source[] =
        "local t = {}\n"
        "for w in ('a b c d'):gmatch('%a') do t[#t + 1] = w:rep(40, ',') end\n"
        "local s = table.concat(t, ' '):gsub('%a', function(c)\n"
        "  return c:upper() .. #t end):gsub('A', '%0%0')\n"
        "print(s, pcall(error, { s }), xpcall(error, tostring, s))\n"
        "coroutine.wrap(function() coroutine.yield(s .. 'x') end)()\n"
        "local f = math.random(9) .. ('%5.2f|%s'):format(1, s)\n"
        "error(setmetatable({}, { __tostring = function()\n"
        "  return f .. 'text' end }))";
    struct script_state *script = *state;
    struct lua_failure failure;
    struct diag diag;
    int refused = 0;
    enum lua_outcome outcome;
    size_t room = 0;

    assert_int_equal(lua_gc(script->L, LUA_GCCOLLECT, 0), 0);
    do {
        lua_settop(script->L, 0);
        script->limits.memory = (size_t)16 << 20;
        assert_int_equal(
            lua_call_load(script->L, text_of(source), "handlers/x.lua", &diag),
            STATUS_OK);
        script->limits.memory = script->limits.used + room;
        room += 97;
        outcome = lua_call_protected(script->L, 0, 0, &failure);
        assert_int_equal(lua_gettop(script->L), 0);
        if (outcome == LUA_CALL_MEMORY)
            refused++;
    } while (outcome == LUA_CALL_MEMORY && room < 1 << 20);
    assert_int_equal(outcome, LUA_CALL_ERROR);
    assert_non_null(strstr(failure.message, "text"));
    assert_true(refused > 50);
}

#define STATE_TEST(name)                                                       \
    cmocka_unit_test_setup_teardown(name, open_state, close_state)

int main(int argc, char **argv)
{
    const struct CMUnitTest deep_tests[] = {
        STATE_TEST(deep_recursion_is_an_error),
        STATE_TEST(deep_recursion_that_is_caught_ends_at_the_time_limit),
    };
    const struct CMUnitTest tests[] = {
        STATE_TEST(work_never_moves_the_deadline),
        STATE_TEST(a_stopped_process_has_its_whole_time),
        STATE_TEST(time_that_the_host_waited_for_a_script_counts),
        STATE_TEST(deep_recursion_is_an_error_on_a_small_stack),
        STATE_TEST(endless_code_fails_by_time),
        STATE_TEST(the_line_that_ran_too_long_is_named),
        STATE_TEST(memory_bombs_fail_by_memory),
        STATE_TEST(a_thousand_memory_bombs_leave_memory_flat),
        STATE_TEST(what_is_raised_becomes_text),
        STATE_TEST(a_long_error_is_cut_to_a_thousand_characters),
        STATE_TEST(deep_recursion_is_an_error),
        STATE_TEST(deep_recursion_that_is_caught_ends_at_the_time_limit),
        STATE_TEST(a_handler_may_not_yield),
        STATE_TEST(permanent_errors_are_told_apart),
        STATE_TEST(an_error_of_the_database_cannot_be_swallowed),
        STATE_TEST(the_limit_of_an_inner_call_is_that_of_the_outer),
        STATE_TEST(scripts_see_the_allowed_globals_only),
        STATE_TEST(what_is_locked_cannot_be_changed),
        STATE_TEST(dangerous_names_are_not_there),
        STATE_TEST(bytecode_is_refused),
        STATE_TEST(a_syntax_error_has_file_and_line),
        STATE_TEST(huge_strings_are_refused),
        STATE_TEST(random_numbers_follow_the_seed),
        STATE_TEST(the_engine_compiles_only_when_asked),
        STATE_TEST(grants_open_what_they_name),
        STATE_TEST(a_call_allocates_nothing),
        STATE_TEST(a_state_too_small_is_an_error),
        STATE_TEST(a_state_opens_whole_or_not_at_all),
        STATE_TEST(memory_may_end_anywhere),
    };

    if (argc == 2 && strcmp(argv[1], "deep") == 0)
        return cmocka_run_group_tests(deep_tests, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
