#include "script/table_file.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "script/lua_call.h"

#include <stdlib.h>

#define SOURCE_MAX ((size_t)1 << 20) /* bytes of the file, and of `file` */
#define DEPTH_MAX  16
#define TIME_US    (2 * CLOCK_SECOND)
#define MEMORY_MAX ((int64_t)64 << 20)

/* The leaves of a table, as they are found. */
struct flat {
    struct arena arena;
    struct table_entry *entries;
    size_t count, capacity;
    struct buffer path; /* of the table under way */
    bool bad;           /* diag says why */
    struct diag diag;
};

static void flat_free(struct flat *flat)
{
    arena_free(&flat->arena);
    buffer_free(&flat->path);
    mem_free(flat->entries);
}

static void refuse(struct flat *flat, const char *what, const char *type)
{
    if (!flat->bad)
        diag_set(&flat->diag, STATUS_CONFIG, "'%s' %s%s",
                 flat->path.len > 0 ? flat->path.data : "the table", what,
                 type);
    flat->bad = true;
}

static struct table_entry *add_entry(struct flat *flat, enum table_kind kind)
{
    struct table_entry *entry;

    if (flat->count == flat->capacity) {
        flat->capacity = 2 * flat->count + 32;
        flat->entries = mem_grow(flat->entries, flat->capacity,
                                 sizeof(*flat->entries));
    }
    entry = &flat->entries[flat->count++];
    *entry = (struct table_entry){
        .key = arena_string(&flat->arena, buffer_text(&flat->path)),
        .kind = kind,
    };
    return entry;
}

static struct text take_string(lua_State *L, int index, struct flat *flat)
{
    struct text text;

    text.data = lua_tolstring(L, index, &text.len);
    return arena_copy(&flat->arena, text);
}

/* True for 1..n strings and for an empty table. */
static bool is_list(lua_State *L, int index)
{
    size_t n = lua_objlen(L, index), keys = 0;

    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        bool good = lua_type(L, -2) == LUA_TNUMBER &&
                    lua_type(L, -1) == LUA_TSTRING;

        lua_pop(L, 1);
        if (!good) {
            lua_pop(L, 1);
            return false;
        }
        keys++;
    }
    return keys == n;
}

static void take_list(lua_State *L, int index, struct flat *flat)
{
    size_t n = lua_objlen(L, index);
    struct text *items = arena_alloc(&flat->arena, n * sizeof(struct text) + 1);
    struct table_entry *entry;

    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, index, (int)i + 1);
        items[i] = take_string(L, -1, flat);
        lua_pop(L, 1);
    }
    entry = add_entry(flat, TABLE_LIST);
    entry->items = items;
    entry->nitems = n;
}

static void take_table(lua_State *L, int index, int depth, struct flat *flat);

static void take_value(lua_State *L, int index, int depth, struct flat *flat)
{
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        add_entry(flat, TABLE_STRING)->string = take_string(L, index, flat);
        return;
    case LUA_TNUMBER:
        add_entry(flat, TABLE_NUMBER)->number = lua_tonumber(L, index);
        return;
    case LUA_TBOOLEAN:
        add_entry(flat, TABLE_BOOLEAN)->boolean = lua_toboolean(L, index) != 0;
        return;
    case LUA_TTABLE:
        if (is_list(L, index))
            take_list(L, index, flat);
        else
            take_table(L, index, depth + 1, flat);
        return;
    default:
        refuse(flat, "may not be a ", luaL_typename(L, index));
    }
}

static void take_table(lua_State *L, int index, int depth, struct flat *flat)
{
    size_t len = flat->path.len;

    if (flat->bad) /* a table that holds itself would take for ever */
        return;
    if (depth > DEPTH_MAX) {
        refuse(flat, "is nested too deeply", "");
        return;
    }
    luaL_checkstack(L, 8, "configuration");
    buffer_reserve(&flat->path, 1); /* an empty key appends nothing */
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        struct text key = TEXT_NONE;

        if (lua_type(L, -2) == LUA_TSTRING)
            key.data = lua_tolstring(L, -2, &key.len);
        if (key.data != NULL && memchr(key.data, '\0', key.len) != NULL) {
            refuse(flat, "has a key with a NUL byte", "");
        } else if (key.data != NULL) {
            if (len > 0)
                buffer_append_char(&flat->path, '.');
            buffer_append_text(&flat->path, key);
            take_value(L, lua_gettop(L), depth, flat);
            flat->path.len = len;
            flat->path.data[len] = '\0';
        } else {
            refuse(flat, "has a key that is a ", luaL_typename(L, -2));
        }
        lua_pop(L, 1);
    }
}

static int compare_entries(const void *a, const void *b)
{
    const struct table_entry *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static enum status give(struct flat *flat, table_entry_fn fn, void *arg,
                        struct diag *diag)
{
    enum status status = STATUS_OK;

    if (flat->bad)
        return diag_set(diag, STATUS_CONFIG, "%s", flat->diag.message);
    if (flat->count > 0)
        qsort(flat->entries, flat->count, sizeof(*flat->entries),
              compare_entries);
    for (size_t i = 0; status == STATUS_OK && i < flat->count; i++)
        status = fn(arg, &flat->entries[i], diag);
    return status;
}

struct file_run {
    struct flat flat;
    struct text source;
    const char *name;   /* of the chunk */
    const char *folder; /* relative paths of `file` start there */
    bool bad_source;
    struct diag diag;
};

/* env(name[, default]) -> text or default, also where the variable is empty:
 * `NAME= moontide run` means to leave it out */
static int env_env(lua_State *L)
{
    const char *value = getenv(luaL_checkstring(L, 1));

    lua_settop(L, 2);
    if (value != NULL && value[0] != '\0')
        lua_pushstring(L, value);
    return 1;
}

/* Reading a global that is not there: what people reach for gets the way. */
static int env_unknown(lua_State *L)
{
    const char *name = lua_tostring(L, 2);

    if (name != NULL && strcmp(name, "os") == 0)
        return luaL_error(L,
                          "the configuration has no `os`; env \"NAME\" gives "
                          "an environment variable, env(\"NAME\", \"other\") "
                          "one with a default");
    if (name != NULL &&
        (strcmp(name, "io") == 0 || strcmp(name, "require") == 0 ||
         strcmp(name, "dofile") == 0))
        return luaL_error(L,
                          "the configuration has no `%s`; file \"NAME\" gives "
                          "the content of a file",
                          name);
    return 0;
}

/* file(path) -> its content, a newline at the end cut off */
static int env_file(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const char *folder = lua_tostring(L, lua_upvalueindex(1));
    char full[4096];
    struct buffer content = BUFFER_EMPTY;
    struct diag diag;
    int n = path[0] == '/'
                ? snprintf(full, sizeof(full), "%s", path)
                : snprintf(full, sizeof(full), "%s/%s", folder, path);

    if (n < 0 || (size_t)n >= sizeof(full))
        return luaL_error(L, "file: the path is too long");
    if (buffer_read_file(&content, full, SOURCE_MAX, &diag) != STATUS_OK) {
        buffer_free(&content);
        return luaL_error(L, "file: %s", diag.message);
    }
    if (content.len > 0 && content.data[content.len - 1] == '\n')
        content.len--;
    lua_pushlstring(L, content.len > 0 ? content.data : "", content.len);
    buffer_free(&content);
    return 1;
}

static int step_run(lua_State *L)
{
    struct file_run *run = lua_touserdata(L, 1);

    if (lua_call_load(L, run->source, run->name, &run->diag) != STATUS_OK) {
        run->bad_source = true;
        return 0;
    }
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, env_env);
    lua_setfield(L, -2, "env");
    lua_pushstring(L, run->folder);
    lua_pushcclosure(L, env_file, 1);
    lua_setfield(L, -2, "file");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, env_unknown);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_setfenv(L, -2);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s: must return a table, not a %s", run->name,
                          luaL_typename(L, -1));
    take_table(L, lua_gettop(L), 0, &run->flat);
    return 0;
}

static enum status run_file(struct file_run *run, struct diag *diag)
{
    const struct state_options options = {
        .time_us = TIME_US,
        .memory = MEMORY_MAX,
    };
    struct script_state *state;
    struct lua_failure failure;
    enum status status = script_state_open(&options, &state, diag);

    if (status != STATUS_OK)
        return status;
    switch (lua_call_run(state, step_run, run, &failure)) {
    case LUA_CALL_OK:
        if (run->bad_source)
            status = diag_set(diag, STATUS_CONFIG, "%s", run->diag.message);
        break;
    case LUA_CALL_TIMEOUT:
        status = diag_set(diag, STATUS_CONFIG,
                          "%s: the file ran longer than %d seconds",
                          state->limits.where, (int)(TIME_US / CLOCK_SECOND));
        break;
    case LUA_CALL_MEMORY:
        status = diag_set(diag, STATUS_CONFIG,
                          "%s: the file needed more than %d MiB", run->name,
                          (int)(MEMORY_MAX >> 20));
        break;
    default:
        status = diag_set(diag, STATUS_CONFIG, "%s", failure.message);
        break;
    }
    script_state_close(state);
    return status;
}

enum status table_file_read(const char *path, struct buffer *source,
                            struct diag *diag)
{
    enum status status = buffer_read_file(source, path, SOURCE_MAX, diag);

    if (status == STATUS_OK)
        return STATUS_OK;
    if (diag != NULL)
        diag->status = STATUS_CONFIG;
    return STATUS_CONFIG;
}

enum status table_file_load(const char *path, table_entry_fn fn, void *arg,
                            struct diag *diag)
{
    struct buffer source = BUFFER_EMPTY;
    enum status status = table_file_read(path, &source, diag);

    if (status == STATUS_OK)
        status = table_file_run(path, buffer_text(&source), fn, arg, diag);
    buffer_free(&source);
    return status;
}

enum status table_file_run(const char *path, struct text source,
                           table_entry_fn fn, void *arg, struct diag *diag)
{
    struct file_run run = {.name = path, .source = source};
    struct buffer folder = BUFFER_EMPTY;
    const char *slash = strrchr(path, '/');
    enum status status;

    if (slash != NULL)
        buffer_append(&folder, path, (size_t)(slash - path));
    else
        buffer_append_char(&folder, '.');
    run.folder = folder.data != NULL ? folder.data : "";
    status = run_file(&run, diag);
    if (status == STATUS_OK && run.flat.bad)
        status = diag_set(diag, STATUS_CONFIG, "%s: %s", path,
                          run.flat.diag.message);
    if (status == STATUS_OK)
        status = give(&run.flat, fn, arg, diag);
    flat_free(&run.flat);
    buffer_free(&folder);
    return status;
}

static const char VISIT_KEY;

static int step_visit(lua_State *L)
{
    struct flat *flat = lua_touserdata(L, 1);

    lua_pushlightuserdata(L, (void *)(uintptr_t)&VISIT_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_istable(L, -1))
        return luaL_error(L, "a table is wanted, not a %s",
                          luaL_typename(L, -1));
    take_table(L, lua_gettop(L), 0, flat);
    return 0;
}

enum status table_file_visit(struct lua_State *L, int index, const char *name,
                             table_entry_fn fn, void *arg, struct diag *diag)
{
    struct flat flat = {.count = 0};
    enum status status;

    lua_pushvalue(L, index);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&VISIT_KEY);
    lua_insert(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    status = lua_call_foreign(L, step_visit, &flat, diag);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&VISIT_KEY);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
    if (status == STATUS_OK && flat.bad)
        status = diag_set(diag, STATUS_CONFIG, "%s: %s", name,
                          flat.diag.message);
    if (status == STATUS_OK)
        status = give(&flat, fn, arg, diag);
    flat_free(&flat);
    return status;
}
