#include "script/declare_warnings.h"

#include "base/buffer.h"
#include "model/saga_steps.h"
#include "script/lua_call.h"
#include "script/source_set.h"
#include "script/upvalue_scan.h"

#include <stdio.h>

#define SLIPS_MAX 2 /* letters; more makes another word */

/* A variable that is no local, where it is used. */
struct use {
    const char *chunk;
    const char *variable;
    int line;
    bool assigned;
};

struct warnings {
    struct use *uses;
    size_t nuses;
    struct arena *arena;
    const char **items;
    size_t count, capacity;
    const struct declaration *declaration;
    const char *chunk;
    const char *what; /* "the handler of account.Opened" */
};

static void add(struct warnings *w, struct text text)
{
    const char **grown;

    if (w->count + 1 >= w->capacity) {
        size_t capacity = w->capacity == 0 ? 8 : 2 * w->capacity;

        grown = arena_alloc_zero(w->arena, capacity * sizeof(*grown));
        if (w->count > 0)
            memcpy(grown, w->items, w->count * sizeof(*grown));
        w->items = grown;
        w->capacity = capacity;
    }
    w->items[w->count++] = arena_string(w->arena, text);
}

static void warn(void *arg, const char *variable, int line)
{
    struct warnings *w = arg;
    struct buffer text = BUFFER_EMPTY;

    buffer_printf(&text,
                  "%s:%d: %s of \"%s\" assigns the local \"%s\" of the file, "
                  "which survives messages and rollbacks; keep such values in "
                  "the state or in a table of the database",
                  w->chunk, line, w->what, w->declaration->name, variable);
    add(w, buffer_text(&text));
    buffer_free(&text);
}

static void scan_function(lua_State *L, struct upvalue_scan *scan, int ref,
                          struct warnings *w)
{
    struct upvalue_function function;
    lua_Debug info;

    if (ref < 0) /* there is none */
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    if (lua_getinfo(L, ">S", &info) == 0 || *info.source != '@')
        return;
    function = (struct upvalue_function){
        .chunk = info.source + 1,
        .first = info.linedefined,
        .last = info.lastlinedefined,
    };
    w->chunk = function.chunk;
    upvalue_scan_function(scan, &function, warn, w);
}

/* --- variables that nobody declares
 * ------------------------------------------------------------------------- */

static void note_use(void *arg, const char *variable, int line, bool assigned)
{
    struct warnings *w = arg;

    w->uses = arena_grow(w->arena, w->uses, w->nuses, sizeof(*w->uses));
    w->uses[w->nuses++] = (struct use){
        .chunk = w->chunk,
        .variable = arena_string(w->arena, text_of(variable)),
        .line = line,
        .assigned = assigned,
    };
}

/* In what the files of declarations require, too. */
static void find_uses(struct source_set *sources, struct upvalue_scan *scan,
                      struct warnings *w)
{
    size_t count;
    const struct source_digest *files = source_set_files(sources, &count);

    for (size_t i = 0; i < count; i++) {
        w->chunk = files[i].file;
        upvalue_scan_globals(scan, w->chunk, note_use, w);
    }
}

static bool is_known(lua_State *L, const struct use *use)
{
    bool known;

    lua_rawgeti(L, LUA_REGISTRYINDEX, script_state_of(L)->globals_ref);
    lua_getfield(L, -1, use->variable);
    known = !lua_isnil(L, -1);
    lua_pop(L, 2);
    return known;
}

/* Nothing but a call of the function would tell. */
static void warn_of_uses(lua_State *L, struct warnings *w)
{
    for (size_t i = 0; i < w->nuses; i++) {
        const struct use *use = &w->uses[i];
        struct buffer text = BUFFER_EMPTY;

        if (!use->assigned && is_known(L, use))
            continue;
        buffer_printf(&text, "%s:%d: ", use->chunk, use->line);
        if (use->assigned)
            buffer_printf(&text,
                          "\"%s\" is assigned and no local: that fails when "
                          "it runs; declare it with local",
                          use->variable);
        else
            buffer_printf(&text,
                          "\"%s\" is read, and nobody declares it: it is nil",
                          use->variable);
        add(w, buffer_text(&text));
        buffer_free(&text);
    }
}

/* --- types that nobody declares
 * ------------------------------------------------------------------------- */

static bool is_applied(const struct declare_set *set, struct text type)
{
    for (size_t i = set->count; i < set->total; i++)
        for (size_t t = 0; t < set->items[i].ntypes; t++)
            if (text_equal(set->items[i].types[t], type))
                return true;
    return false;
}

/* A misspelt type is no error that anything would ever tell: such events only
 * never come. One that an aggregate applies is there, whoever declares it. */
static void warn_of_slips(const struct declare_set *set,
                          const char *const *declared,
                          const struct declaration *d, struct warnings *w)
{
    for (size_t t = 0; t < d->ntypes; t++) {
        struct buffer text = BUFFER_EMPTY;
        const char *near;

        if (event_types_find(&set->event_types, d->types[t]) != NULL ||
            is_applied(set, d->types[t]))
            continue;
        near = text_nearest_within(d->types[t].data, declared, SLIPS_MAX);
        if (near == NULL)
            continue;
        buffer_printf(&text,
                      "%s:%d: \"%s\" has a handler for %s, which no "
                      "moontide.event_type declares; did you mean %s?",
                      d->file, d->line, d->name, d->types[t].data, near);
        add(w, buffer_text(&text));
        buffer_free(&text);
    }
}

static void find_slips(const struct declare_set *set, struct warnings *w)
{
    const struct event_types *types = &set->event_types;
    const char **declared = arena_alloc_zero(set->arena, (types->count + 1) *
                                                             sizeof(*declared));

    for (size_t i = 0; i < types->count; i++)
        declared[i] = types->items[i].name;
    for (size_t i = 0; types->count > 0 && i < set->count; i++)
        warn_of_slips(set, declared, &set->items[i], w);
}

/* No call of this raises while the scanner is open. */
void declare_warnings_find(lua_State *L, struct declare_set *set)
{
    struct warnings w = {.arena = set->arena};
    struct upvalue_scan *scan = NULL;
    char what[LIMITS_TEXT_SIZE];

    luaL_checkstack(L, 4, NULL);
    if (script_state_of(L)->app_dir != NULL)
        scan = upvalue_scan_open(script_state_of(L)->app_dir);
    for (size_t i = 0; scan != NULL && i < set->total; i++) {
        const struct declaration *d = &set->items[i];

        w.declaration = d;
        w.what = "the key function";
        scan_function(L, scan, set->code[i].key, &w);
        w.what = "the initial function";
        scan_function(L, scan, set->code[i].initial, &w);
        w.what = "the reset function";
        scan_function(L, scan, set->code[i].reset, &w);
        w.what = "the on_error function";
        scan_function(L, scan, set->code[i].on_error, &w);
        for (size_t t = 0; t < d->ntypes; t++) {
            snprintf(what, sizeof(what), "the handler for %.100s",
                     d->types[t].data);
            w.what = what;
            scan_function(L, scan, set->code[i].handlers[t], &w);
        }
        for (size_t c = 0; c < d->ncommands; c++) {
            snprintf(what, sizeof(what), "the command %.100s",
                     d->commands[c].data);
            w.what = what;
            scan_function(L, scan, set->code[i].commands[c], &w);
        }
        for (size_t n = 0; n < d->ndeadlines; n++) {
            snprintf(what, sizeof(what), "the handler for the deadline %.100s",
                     d->deadlines[n].data);
            w.what = what;
            scan_function(L, scan, set->code[i].deadlines[n], &w);
        }
        for (size_t n = 0; n < 2 * d->nsteps; n++) {
            snprintf(what, sizeof(what), "the message of the step %.100s",
                     d->steps[n / 2].name.data);
            w.what = what;
            scan_function(L, scan, set->code[i].messages[n], &w);
        }
        w.what = "the on_end function";
        scan_function(L, scan, set->code[i].on_end, &w);
    }
    if (scan != NULL && script_state_of(L)->sources != NULL)
        find_uses(script_state_of(L)->sources, scan, &w);
    upvalue_scan_close(scan);
    warn_of_uses(L, &w);
    find_slips(set, &w);
    if (w.items == NULL)
        w.items = arena_alloc_zero(set->arena, sizeof(*w.items));
    set->warnings = w.items;
}
