#include "script/limits.h"

#include "base/clock.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Instructions between two looks at the clock. An instruction can be a copy of
 * megabytes, or one more level of C. */
#define HOOK_COUNT 1000
#define OWN_SOURCE "@moontide/" /* of the modules that the host brings */
#define STACK_ROOM ((uintptr_t)4 << 20) /* of C, for nested calls, at most */
#define DEEP_TEXT  "C stack overflow (calls are nested too deeply)"

#define STALL   (CLOCK_SECOND / 10)  /* shorter gaps are not looked into */
#define CPU_AGE (CLOCK_SECOND / 100) /* of the processor time kept */
/* A granted library can wait, too, and must not do so for ever. */
#define STALLS_MAX 10

/* Percent of what is in use that may be added before the next collection. The
 * heap of handlers is small and nearly all of it dies at once, so rarer
 * collections cost little memory and save a twentieth of the time. */
#define PAUSE 400

static void *counted(void *data, void *old, size_t had, size_t want)
{
    struct limits *limits = data;
    void *got;

    if (want > had && want - had > limits->memory - limits->used) {
        limits->refused = true;
        return NULL;
    }
    got = limits->allocate(limits->allocate_data, old, had, want);
    if (got == NULL && want != 0) {
        limits->refused = true;
        return NULL;
    }
    limits->used = limits->used - had + want;
    return got;
}

static int raise_time(lua_State *L, const struct limits *limits)
{
    char text[LIMITS_TEXT_SIZE];

    limits_time_text(limits, text);
    if (limits->where[0] != '\0')
        lua_pushfstring(L, "%s: %s", limits->where, text);
    else
        lua_pushstring(L, text);
    return lua_error(L);
}

bool limits_is_deep(const struct limits *limits)
{
    return (uintptr_t)__builtin_frame_address(0) < limits->stack_bound;
}

void limits_check_stack(lua_State *L)
{
    if (limits_is_deep(limits_of(L)))
        luaL_error(L, DEEP_TEXT);
}

static void hook(lua_State *L, lua_Debug *at);

bool limits_frame_where(lua_State *L, lua_Debug *frame,
                        char out[LIMITS_TEXT_SIZE])
{
    if (lua_getinfo(L, "Sl", frame) == 0 || frame->currentline <= 0 ||
        frame->source[0] != '@' ||
        strncmp(frame->source, OWN_SOURCE, sizeof(OWN_SOURCE) - 1) == 0)
        return false;
    (void)snprintf(out, LIMITS_TEXT_SIZE, "%s:%d", frame->short_src,
                   frame->currentline);
    return true;
}

static int levels_of(lua_State *L)
{
    lua_Debug frame;
    int levels = 0;

    while (lua_getstack(L, levels, &frame) != 0)
        levels++;
    return levels;
}

struct limits_caller limits_enter(lua_State *L)
{
    struct limits_caller before = limits_of(L)->caller;

    limits_of(L)->caller = (struct limits_caller){L, levels_of(L)};
    return before;
}

void limits_where(lua_State *L, char out[LIMITS_TEXT_SIZE])
{
    const struct limits_caller *caller = &limits_of(L)->caller;
    int outer = caller->thread == L ? caller->levels : 0;
    lua_Debug frame;

    out[0] = '\0';
    for (int level = 0; lua_getstack(L, level, &frame) != 0; level++) {
        if (!limits_frame_where(L, &frame, out))
            continue;
        if (lua_getstack(L, level + outer, &frame) == 0)
            out[0] = '\0'; /* it has called the host */
        return;
    }
}

/* Makes every further instruction raise, in every coroutine. */
static void expire(lua_State *L, struct limits *limits)
{
    limits->expired = true;
    limits_where(L, limits->where);
    lua_sethook(L, hook, LUA_MASKCOUNT, 1);
}

static int64_t cpu_time(void)
{
    struct timespec used;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0)
        return 0;
    return (int64_t)used.tv_sec * CLOCK_SECOND + used.tv_nsec / 1000;
}

/* Costs a system call, so not at every look. */
static void note_cpu(struct limits *limits, int64_t now)
{
    if (now - limits->cpu_seen < CPU_AGE)
        return;
    limits->cpu = cpu_time();
    limits->cpu_seen = now;
}

/* The processor time was read a little before the gap began, so that the
 * deadline rather moves too little. */
static void look(struct limits *limits, int64_t now)
{
    int64_t gap = now - limits->seen;

    limits->seen = now;
    if (gap >= STALL && limits->stalls < STALLS_MAX) {
        int64_t idle = gap - (cpu_time() - limits->cpu);

        if (idle >= STALL && idle <= gap &&
            idle < INT64_MAX - limits->deadline) {
            limits->deadline += idle;
            limits->stalls++;
        }
    }
    note_cpu(limits, now);
}

static void check_time(lua_State *L, struct limits *limits)
{
    if (!limits->expired) {
        int64_t now = clock_monotonic();

        look(limits, now);
        if (now >= limits->deadline)
            expire(L, limits);
    }
    if (limits->expired)
        (void)raise_time(L, limits);
}

static void hook(lua_State *L, lua_Debug *at)
{
    struct limits *limits = limits_of(L);

    (void)at;
    check_time(L, limits);
    if (limits_is_deep(limits)) {
        limits->deep = true;
        /* a script that catches the error goes on at its own level only */
        lua_sethook(L, hook, LUA_MASKCOUNT, 1);
        luaL_error(L, DEEP_TEXT);
    } else if (limits->deep) {
        limits->deep = false;
        lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_COUNT);
    }
}

/* What lies above the call on the stack, and what is called where the bound
 * is reached, need some as well. */
static uintptr_t stack_room(void)
{
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) != 0 ||
        stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur / 2 > STACK_ROOM)
        return STACK_ROOM;
    return (uintptr_t)stack.rlim_cur / 2;
}

void limits_install(lua_State *L, struct limits *limits)
{
    limits->stack_room = stack_room();
    limits->allocate = lua_getallocf(L, &limits->allocate_data);
    limits->used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 +
                   (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
    limits->deadline = INT64_MAX;
    if (limits->memory < limits->used)
        limits->memory = limits->used; /* nothing more: the next call says so */
    lua_setallocf(L, counted, limits);
    lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_COUNT);
    lua_gc(L, LUA_GCSETPAUSE, PAUSE);
}

void limits_remove(lua_State *L, const struct limits *limits)
{
    lua_sethook(L, NULL, 0, 0);
    lua_setallocf(L, limits->allocate, limits->allocate_data);
}

void limits_arm(struct limits *limits)
{
    int64_t now = clock_monotonic();
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    limits->stack_bound = here > limits->stack_room ? here - limits->stack_room
                                                    : 0;
    limits->expired = false;
    limits->refused = false;
    limits->seen = now;
    limits->stalls = 0;
    note_cpu(limits, now);
    limits->deadline = limits->time_us < INT64_MAX - now ? now + limits->time_us
                                                         : INT64_MAX;
}

void limits_disarm(lua_State *L, struct limits *limits)
{
    limits->deadline = INT64_MAX;
    limits->stack_bound = 0;
    if (limits->expired || limits->deep) {
        limits->deep = false;
        lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_COUNT);
    }
}

void limits_check(lua_State *L)
{
    check_time(L, limits_of(L));
}

void limits_spent(lua_State *L)
{
    limits_of(L)->seen = clock_monotonic();
}

static const char *who(const struct limits *limits)
{
    return limits->loads ? "script" : "handler";
}

void limits_time_text(const struct limits *limits, char out[LIMITS_TEXT_SIZE])
{
    char limit[CLOCK_DURATION_SIZE];

    clock_format_duration(limits->time_us, limit);
    (void)snprintf(out, LIMITS_TEXT_SIZE, "%s ran longer than limits.time = %s",
                   who(limits), limit);
}

void limits_memory_text(const struct limits *limits, char out[LIMITS_TEXT_SIZE])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    size_t value = limits->memory;
    size_t unit = 0;

    while (unit < 3 && value != 0 && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, LIMITS_TEXT_SIZE,
                   "%s needed more than limits.memory = %zu%s", who(limits),
                   value, units[unit]);
}
