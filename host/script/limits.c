#include "script/limits.h"

#include "base/clock.h"

#include <lauxlib.h>
#include <stdio.h>

#define HOOK_COUNT 10000 /* instructions between two looks at the clock */

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

static void hook(lua_State *L, lua_Debug *at)
{
    struct limits *limits = limits_of(L);

    if (!limits->expired) {
        if (clock_monotonic() < limits->deadline)
            return;
        limits->expired = true;
        limits->where[0] = '\0';
        if (lua_getinfo(L, "Sl", at) != 0 && at->currentline > 0)
            (void)snprintf(limits->where, sizeof(limits->where), "%s:%d",
                           at->short_src, at->currentline);
        /* From here on every instruction raises, in every coroutine. */
        lua_sethook(L, hook, LUA_MASKCOUNT, 1);
    }
    (void)raise_time(L, limits);
}

void limits_install(lua_State *L, struct limits *limits)
{
    limits->allocate = lua_getallocf(L, &limits->allocate_data);
    limits->used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 +
                   (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
    limits->deadline = INT64_MAX;
    if (limits->memory < limits->used)
        limits->memory = limits->used; /* nothing more: the next call says so */
    lua_setallocf(L, counted, limits);
    lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_COUNT);
}

void limits_remove(lua_State *L, const struct limits *limits)
{
    lua_sethook(L, NULL, 0, 0);
    lua_setallocf(L, limits->allocate, limits->allocate_data);
}

void limits_arm(struct limits *limits)
{
    int64_t now = clock_monotonic();

    limits->expired = false;
    limits->refused = false;
    limits->deadline = limits->time_us < INT64_MAX - now ? now + limits->time_us
                                                         : INT64_MAX;
}

void limits_disarm(lua_State *L, struct limits *limits)
{
    limits->deadline = INT64_MAX;
    if (limits->expired)
        lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_COUNT);
}

void limits_check(lua_State *L)
{
    struct limits *limits = limits_of(L);
    lua_Debug at;

    if (!limits->expired) {
        if (clock_monotonic() < limits->deadline)
            return;
        limits->expired = true;
        limits->where[0] = '\0';
        for (int level = 0; lua_getstack(L, level, &at) != 0; level++) {
            if (lua_getinfo(L, "Sl", &at) != 0 && at.currentline > 0) {
                (void)snprintf(limits->where, sizeof(limits->where), "%s:%d",
                               at.short_src, at.currentline);
                break;
            }
        }
        lua_sethook(L, hook, LUA_MASKCOUNT, 1);
    }
    (void)raise_time(L, limits);
}

void limits_time_text(const struct limits *limits, char out[LIMITS_TEXT_SIZE])
{
    long long us = limits->time_us;
    long long value = us;
    const char *unit = "us";

    if (us % 1000000 == 0) {
        value = us / 1000000;
        unit = "s";
    } else if (us % 1000 == 0) {
        value = us / 1000;
        unit = "ms";
    }
    (void)snprintf(out, LIMITS_TEXT_SIZE,
                   "handler ran longer than limits.time = %lld%s", value, unit);
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
                   "handler needed more than limits.memory = %zu%s", value,
                   units[unit]);
}
