#include "script/state.h"

#include "base/memory.h"
#include "script/lua_call.h"
#include "script/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <luajit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static enum status real_folder(const char *path, const char *what, char **real,
                               struct diag *diag)
{
    char resolved[PATH_MAX];
    struct stat info;

    if (realpath(path, resolved) == NULL)
        return diag_set(diag, STATUS_CONFIG, "the %s \"%s\" cannot be read: %s",
                        what, path, strerror(errno));
    if (stat(resolved, &info) != 0 || !S_ISDIR(info.st_mode))
        return diag_set(diag, STATUS_CONFIG, "the %s \"%s\" is not a folder",
                        what, path);
    *real = mem_copy_text(resolved, strlen(resolved));
    return STATUS_OK;
}

static enum status find_folders(struct script_state *state,
                                const struct state_options *options,
                                struct diag *diag)
{
    char path[PATH_MAX];
    enum status status;
    int len;

    if (options->app_dir == NULL)
        return STATUS_OK;
    status = real_folder(options->app_dir, "application folder",
                         &state->app_dir, diag);
    if (status != STATUS_OK || options->scripts == NULL)
        return status;
    if (options->scripts[0] == '/')
        len = snprintf(path, sizeof(path), "%s", options->scripts);
    else
        len = snprintf(path, sizeof(path), "%s/%s", options->app_dir,
                       options->scripts);
    if (len < 0 || (size_t)len >= sizeof(path))
        return diag_set(diag, STATUS_CONFIG,
                        "scripts folder \"%s\": the path"
                        " is too long",
                        options->scripts);
    return real_folder(path, "scripts folder", &state->scripts, diag);
}

/* Compiled code is written and then made executable. Where that is forbidden
 * the engine would end the whole process, in the middle of some handler. */
static enum status check_jit(struct diag *diag)
{
    const size_t size = 4096;
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool allowed = page != MAP_FAILED &&
                   mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    int failure = errno;

    if (page != MAP_FAILED)
        munmap(page, size);
    if (allowed)
        return STATUS_OK;
    return diag_set(diag, STATUS_CONFIG,
                    "jit = true cannot work here: this process may not make "
                    "memory executable (%s); set jit to false, or, where "
                    "systemd starts the host, MemoryDenyWriteExecute=no in its "
                    "unit",
                    strerror(failure));
}

static int build(lua_State *L)
{
    const struct state_options *options = lua_touserdata(L, 1);
    struct script_state *state = script_state_of(L);

    lua_newtable(L);
    state->modules_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    state->native_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    sandbox_open(L, options->grants, options->jit);
    /* Opening a library may turn the engine on again, so this comes last. */
    (void)luaJIT_setmode(L, 0,
                         LUAJIT_MODE_ENGINE |
                             (options->jit ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
    return 0;
}

enum status script_state_open(const struct state_options *options,
                              struct script_state **state_out,
                              struct diag *diag)
{
    struct script_state *state;
    struct lua_failure failure;
    enum status status;

    status = sandbox_check_grants(options->grants, diag);
    if (status == STATUS_OK && options->jit)
        status = check_jit(diag);
    if (status != STATUS_OK)
        return status;
    state = mem_alloc(sizeof(*state));
    state->log = options->log;
    state->limits.time_us = options->time_us;
    state->limits.memory = (size_t)options->memory;
    status = find_folders(state, options, diag);
    if (status != STATUS_OK)
        goto fail;
    state->L = luaL_newstate();
    if (state->L == NULL) {
        status = diag_set(diag, STATUS_LIMIT, "not enough memory for Lua");
        goto fail;
    }
    limits_install(state->L, &state->limits);
    if (!lua_call_init(state)) {
        status = diag_set(diag, STATUS_LIMIT,
                          "limits.memory is too small for a script");
        goto fail;
    }
    if (lua_call_run(state, build, (void *)(uintptr_t)options, &failure) !=
        LUA_CALL_OK) {
        status = diag_set(diag,
                          failure.outcome == LUA_CALL_MEMORY ? STATUS_LIMIT
                                                             : STATUS_CONFIG,
                          "%s", failure.message);
        goto fail;
    }
    script_state_seed(state, 0);
    *state_out = state;
    return STATUS_OK;

fail:
    script_state_close(state);
    return status;
}

void script_state_close(struct script_state *state)
{
    if (state == NULL)
        return;
    if (state->L != NULL) {
        limits_remove(state->L, &state->limits);
        lua_close(state->L);
    }
    mem_free(state->app_dir);
    mem_free(state->scripts);
    mem_free(state);
}

/* splitmix64: spreads any seed over the state of the generator. */
static uint64_t spread(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void script_state_seed(struct script_state *state, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++)
        state->random[i] = spread(&seed);
}

void script_state_push_native(struct script_state *state, lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, state->native_ref);
}
