#include "script/upvalue_scan.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "script/lua_call.h"
#include "script/lua_files.h"

#include <limits.h>
#include <lualib.h>
#include <stdio.h>

#define SOURCE_LIMIT ((size_t)16 << 20)

struct upvalue_scan {
    lua_State *L; /* the scanner's function lies at index 1 */
    const char *app_dir;
    struct buffer source; /* of the file `chunk` */
    char chunk[PATH_MAX];
};

/* What one protected run works on. */
struct job {
    struct upvalue_scan *scan;
    const struct upvalue_function *function;
    upvalue_fn fn;
    global_fn global; /* instead: of the whole file */
    void *arg;
};

static int open_scanner(lua_State *L)
{
    const struct lua_file *file = lua_files;

    luaL_openlibs(L);
    while (file->module != NULL && strcmp(file->module, "moontide.scan") != 0)
        file++;
    if (file->module == NULL ||
        luaL_loadbuffer(L, file->data, file->len, file->chunk) != 0)
        return luaL_error(L, "no scanner");
    lua_call(L, 0, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "moontide.scan");
    return 0;
}

struct upvalue_scan *upvalue_scan_open(const char *app_dir)
{
    struct upvalue_scan *scan = mem_alloc(sizeof(*scan));
    struct diag diag;

    scan->app_dir = app_dir;
    scan->L = luaL_newstate();
    if (scan->L == NULL ||
        lua_call_foreign(scan->L, open_scanner, NULL, &diag) != STATUS_OK) {
        upvalue_scan_close(scan);
        return NULL;
    }
    return scan;
}

void upvalue_scan_close(struct upvalue_scan *scan)
{
    if (scan == NULL)
        return;
    if (scan->L != NULL)
        lua_close(scan->L);
    buffer_free(&scan->source);
    mem_free(scan);
}

static void tell(lua_State *L, const struct job *job)
{
    const char *variable;
    int line;

    lua_getfield(L, -1, "line");
    lua_getfield(L, -2, "name");
    lua_getfield(L, -3, "assigned");
    variable = lua_tostring(L, -2);
    line = (int)lua_tointeger(L, -3);
    if (job->function != NULL)
        job->fn(job->arg, variable, line);
    else
        job->global(job->arg, variable, line, lua_toboolean(L, -1) != 0);
    lua_pop(L, 3);
}

static int run_scan(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);
    const struct upvalue_scan *scan = job->scan;

    lua_getfield(L, LUA_REGISTRYINDEX, "moontide.scan");
    lua_getfield(L, -1, job->function != NULL ? "assigned" : "globals");
    lua_pushlstring(L, scan->source.data, scan->source.len);
    lua_pushfstring(L, "@%s", scan->chunk);
    if (job->function != NULL) {
        lua_pushinteger(L, job->function->first);
        lua_pushinteger(L, job->function->last);
    }
    lua_call(L, job->function != NULL ? 4 : 2, 1);
    for (int i = 1; i <= (int)lua_objlen(L, -1); i++) {
        lua_rawgeti(L, -1, i);
        tell(L, job);
        lua_pop(L, 1);
    }
    return 0;
}

/* The file stays loaded for the next function of it. */
static bool load_source(struct upvalue_scan *scan, const char *chunk)
{
    char path[PATH_MAX];
    struct diag diag;
    int len;

    if (scan->source.len > 0 && strcmp(scan->chunk, chunk) == 0)
        return true;
    buffer_clear(&scan->source);
    len = snprintf(path, sizeof(path), "%s/%s", scan->app_dir, chunk);
    if (len < 0 || (size_t)len >= sizeof(path))
        return false;
    snprintf(scan->chunk, sizeof(scan->chunk), "%s", chunk);
    return buffer_read_file(&scan->source, path, SOURCE_LIMIT, &diag) ==
               STATUS_OK &&
           scan->source.len > 0;
}

/* A scan that fails finds nothing: its warnings are a courtesy. */
static void run(struct job *job, const char *chunk)
{
    struct diag diag;

    if (load_source(job->scan, chunk) &&
        lua_call_foreign(job->scan->L, run_scan, job, &diag) != STATUS_OK)
        buffer_clear(&job->scan->source);
}

void upvalue_scan_function(struct upvalue_scan *scan,
                           const struct upvalue_function *function,
                           upvalue_fn fn, void *arg)
{
    struct job job = {.scan = scan, .function = function, .fn = fn, .arg = arg};

    run(&job, function->chunk);
}

void upvalue_scan_globals(struct upvalue_scan *scan, const char *chunk,
                          global_fn fn, void *arg)
{
    struct job job = {.scan = scan, .global = fn, .arg = arg};

    run(&job, chunk);
}
