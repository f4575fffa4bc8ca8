#include "script/script.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "script/declare.h"
#include "script/declare_warnings.h"
#include "script/event_check.h"
#include "script/handler_call.h"
#include "script/lua_call.h"
#include "script/source_bundle.h"
#include "script/source_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#define SOURCE_MAX ((size_t)4 << 20) /* bytes of one script */

struct script {
    struct script_state *state;
    struct arena arena;
    struct declare_set set;
    struct handler_code *code;
    char version[DIGEST_LEN + 1];
};

struct file_list {
    char **names; /* sorted bytewise: the order of declarations */
    size_t count, capacity;
};

static void file_list_free(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mem_free(list->names[i]);
    mem_free(list->names);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_script(const char *name)
{
    size_t len = strlen(name);

    return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".lua") == 0;
}

/* Folders below hold modules for require; they declare nothing. */
static enum status list_files(const char *folder, struct file_list *list,
                              struct diag *diag)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    if (dir == NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "the scripts folder %s cannot be read: %s; set "
                        "`scripts` or make the folder",
                        folder, strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        if (!is_script(entry->d_name))
            continue;
        if (list->count == list->capacity) {
            list->capacity = 2 * list->count + 16;
            list->names = mem_grow(list->names, list->capacity,
                                   sizeof(*list->names));
        }
        list->names[list->count++] = mem_copy_text(entry->d_name,
                                                   strlen(entry->d_name));
    }
    closedir(dir);
    if (list->count > 0)
        qsort(list->names, list->count, sizeof(*list->names), compare_names);
    return STATUS_OK;
}

/* What the protected steps below work on. */
struct loading {
    struct script *script;
    const char *file; /* as messages name it */
    struct text source;
    struct diag diag; /* of a chunk that does not compile */
    bool bad_source;
};

static int step_begin(lua_State *L)
{
    declare_begin(L);
    return 0;
}

static int step_file(lua_State *L)
{
    struct loading *loading = lua_touserdata(L, 1);
    int base = lua_gettop(L);

    if (lua_call_load(L, loading->source, loading->file, &loading->diag) !=
        STATUS_OK) {
        loading->bad_source = true;
        return 0;
    }
    if (!source_set_is_sealed(loading->script->state->sources))
        source_set_add(loading->script->state->sources, loading->file, NULL,
                       loading->source);
    lua_call(L, 0, LUA_MULTRET);
    declare_file(L, loading->file, lua_gettop(L) - base);
    return 0;
}

static int step_end(lua_State *L)
{
    struct loading *loading = lua_touserdata(L, 1);

    declare_end(L, &loading->script->set);
    return 0;
}

/* Once it is known what handlers require late. */
static int step_warn(lua_State *L)
{
    struct loading *loading = lua_touserdata(L, 1);

    declare_warnings_find(L, &loading->script->set);
    return 0;
}

static enum status run_step(struct loading *loading, lua_CFunction step,
                            struct diag *diag)
{
    struct lua_failure failure;

    loading->bad_source = false;
    if (lua_call_run(loading->script->state, step, loading, &failure) !=
        LUA_CALL_OK)
        return diag_set(diag, STATUS_CONFIG, "%s", failure.message);
    if (loading->bad_source)
        return diag_set(diag, STATUS_CONFIG, "%s", loading->diag.message);
    return STATUS_OK;
}

static enum status load_file(struct loading *loading, const char *folder,
                             const char *shown, const char *name,
                             struct diag *diag)
{
    struct buffer path = BUFFER_EMPTY, file = BUFFER_EMPTY;
    struct buffer source = BUFFER_EMPTY;
    enum status status;

    buffer_printf(&path, "%s/%s", folder, name);
    buffer_printf(&file, "%s/%s", shown, name);
    status = buffer_read_file(&source, path.data, SOURCE_MAX, diag);
    if (status != STATUS_OK) {
        if (diag != NULL)
            diag->status = STATUS_CONFIG;
        status = STATUS_CONFIG;
    } else {
        loading->file = file.data;
        loading->source = buffer_text(&source);
        status = run_step(loading, step_file, diag);
    }
    buffer_free(&path);
    buffer_free(&file);
    buffer_free(&source);
    return status;
}

static enum status load_folder(struct loading *loading,
                               const struct script_options *options,
                               struct diag *diag)
{
    struct file_list list = {.names = NULL};
    struct buffer folder = BUFFER_EMPTY;
    enum status status;

    /* the real path: where a link is put to another folder meanwhile, all
     * files are those of one of them */
    if (loading->script->state->scripts != NULL)
        buffer_append_string(&folder, loading->script->state->scripts);
    else
        buffer_printf(&folder, "%s/%s", options->app_dir, options->scripts);
    status = list_files(folder.data, &list, diag);
    for (size_t i = 0; status == STATUS_OK && i < list.count; i++)
        status = load_file(loading, folder.data, options->scripts,
                           list.names[i], diag);
    file_list_free(&list);
    buffer_free(&folder);
    return status;
}

static enum status load_bundle(struct loading *loading, struct diag *diag)
{
    const struct source_set *sources = loading->script->state->sources;
    enum status status = STATUS_OK;

    for (size_t i = 0;
         status == STATUS_OK &&
         source_set_declaring(sources, i, &loading->file, &loading->source);
         i++)
        status = run_step(loading, step_file, diag);
    return status;
}

static enum status load_all(struct script *script,
                            const struct script_options *options,
                            struct diag *diag)
{
    struct loading loading = {.script = script};
    enum status status;

    script->state->limits.loads = true;
    status = run_step(&loading, step_begin, diag);
    if (status == STATUS_OK && options->bundle.data != NULL)
        status = load_bundle(&loading, diag);
    else if (status == STATUS_OK)
        status = load_folder(&loading, options, diag);
    if (status == STATUS_OK)
        status = run_step(&loading, step_end, diag);
    script->state->limits.loads = false;
    return status;
}

/* What only a handler will require must at least compile. */
static enum status check_late(struct script_state *state, struct diag *diag)
{
    struct text source;
    const char *chunk;

    for (size_t i = 0; source_set_late(state->sources, i, &chunk, &source);
         i++) {
        enum status status = lua_call_load(state->L, source, chunk, diag);

        if (status != STATUS_OK)
            return status;
        lua_pop(state->L, 1);
    }
    return STATUS_OK;
}

static enum status find_warnings(struct script *script, struct diag *diag)
{
    struct loading loading = {.script = script};

    return run_step(&loading, step_warn, diag);
}

/* What is collected at the end may still ask for modules. */
static void close_state(struct script *script)
{
    struct source_set *sources = script->state->sources;

    script_state_close(script->state);
    source_set_free(sources);
}

enum status script_open(const struct script_options *options,
                        struct script **script_out, struct diag *diag)
{
    bool from_disk = options->bundle.data == NULL;
    const struct state_options state_options = {
        .time_us = options->limits.time_us,
        .memory = options->limits.memory,
        .jit = options->jit,
        .grants = options->grants,
        .app_dir = from_disk ? options->app_dir : NULL,
        .scripts = from_disk ? options->scripts : NULL,
        .log = options->log,
    };
    struct script *script = mem_alloc(sizeof(*script));
    struct handler_call_options call_options = {
        .payload = options->limits.payload,
        .log = options->log,
    };
    enum status status = script_state_open(&state_options, &script->state,
                                           diag);

    if (status != STATUS_OK)
        goto fail_state;
    script->set = (struct declare_set){
        .arena = &script->arena,
        .dialect = options->dialect,
        .partitions = options->partitions,
        .policy = options->policy,
    };
    if (from_disk)
        script->state->sources = source_set_new();
    else
        status = source_bundle_read(options->bundle, &script->state->sources,
                                    diag);
    if (status == STATUS_OK)
        status = load_all(script, options, diag);
    if (status != STATUS_OK)
        goto fail_load;
    if (from_disk)
        source_set_seal(script->state->sources, script->state);
    status = check_late(script->state, diag);
    if (status == STATUS_OK)
        status = find_warnings(script, diag);
    if (status != STATUS_OK)
        goto fail_load;
    source_set_version(script->state->sources, script->version);
    call_options.state = script->state;
    call_options.set = &script->set;
    status = handler_call_open(&call_options, &script->code, diag);
    if (status != STATUS_OK)
        goto fail_load;
    *script_out = script;
    return STATUS_OK;

fail_load:
    close_state(script);
    arena_free(&script->arena);
fail_state:
    mem_free(script);
    return status;
}

void script_close(struct script *script)
{
    if (script == NULL)
        return;
    handler_call_close(script->code);
    close_state(script);
    arena_free(&script->arena);
    mem_free(script);
}

const struct declaration *script_declarations(const struct script *script,
                                              size_t *count)
{
    *count = script->set.count;
    return script->set.items;
}

const char *script_version(const struct script *script)
{
    return script->version;
}

const struct source_digest *script_files(const struct script *script,
                                         size_t *count)
{
    return source_set_files(script->state->sources, count);
}

void script_bundle(const struct script *script, struct buffer *out)
{
    source_bundle_write(script->state->sources, out);
}

const char *const *script_warnings(const struct script *script)
{
    return script->set.warnings;
}

enum status script_check_events(struct script *script,
                                struct append_event *events, size_t count,
                                size_t *bad, struct diag *diag)
{
    const struct event_types *types = &script->set.event_types;

    for (size_t i = 0; types->count > 0 && i < count; i++) {
        enum status status = event_check(script->state, types, &events[i],
                                         diag);

        if (status == STATUS_OK)
            continue;
        *bad = i;
        return status;
    }
    return STATUS_OK;
}

const struct declaration *script_aggregates(const struct script *script,
                                            size_t *count)
{
    *count = script->set.total - script->set.count;
    return script->set.items + script->set.count;
}

const struct event_types *script_event_types(const struct script *script)
{
    return &script->set.event_types;
}

const struct publishers *script_publishers(const struct script *script)
{
    return &script->set.publishers;
}

struct handler script_handler(struct script *script)
{
    return (struct handler){.ops = &handler_call_ops, .code = script->code};
}

void script_watch(struct script *script, struct attempt_slot *slot)
{
    handler_call_watch(script->code, slot);
}

void script_fail_next(struct script *script, const char *consumer,
                      const char *type, int times)
{
    handler_call_fail_next(script->code, consumer, type, times);
}

int64_t script_memory(const struct script *script)
{
    return (int64_t)script->state->limits.used;
}
