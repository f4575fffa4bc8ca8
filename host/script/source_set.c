#include "script/source_set_parts.h"

#include "base/memory.h"
#include "script/lua_token.h"
#include "script/require.h"

#include <limits.h>
#include <stdlib.h>

struct source_set *source_set_new(void)
{
    return mem_alloc(sizeof(struct source_set));
}

void source_set_free(struct source_set *set)
{
    if (set == NULL)
        return;
    mem_free(set->digests);
    arena_free(&set->arena);
    mem_free(set);
}

static struct source_file *find_file(const struct source_set *set,
                                     const char *chunk)
{
    struct source_file *file = set->files;

    while (file != NULL && strcmp(file->chunk, chunk) != 0)
        file = file->next;
    return file;
}

static struct module *find_module(const struct source_set *set,
                                  const char *name)
{
    struct module *module = set->modules;

    while (module != NULL && strcmp(module->name, name) != 0)
        module = module->next;
    return module;
}

struct module *source_set_add_module(struct source_set *set, const char *name,
                                     struct source_file *file)
{
    struct module *module = find_module(set, name);

    if (module == NULL) {
        module = arena_alloc_zero(&set->arena, sizeof(*module));
        module->name = arena_string(&set->arena, text_of(name));
        module->next = set->modules;
        set->modules = module;
    }
    if (file != NULL)
        module->file = file;
    return module;
}

static void want(struct source_set *set, struct source_file *file,
                 struct text module)
{
    struct wanted *wanted = file->wanted;

    while (wanted != NULL && !text_equal(text_of(wanted->module), module))
        wanted = wanted->next;
    /* what no file can have as its name is wanted in vain */
    if (wanted != NULL || module.len == 0 ||
        memchr(module.data, '\0', module.len) != NULL)
        return;
    wanted = arena_alloc(&set->arena, sizeof(*wanted));
    wanted->module = arena_string(&set->arena, module);
    wanted->next = file->wanted;
    file->wanted = wanted;
}

static void add_token(struct digest *digest, const struct lua_token *token)
{
    digest_integer(digest, token->kind);
    digest_text(digest, token->text);
}

/* Follows `require "x"` and `require("x")` through the tokens. */
struct require_scan {
    enum { REQUIRE_NONE, REQUIRE_NAME, REQUIRE_OPEN } seen;
};

static bool scan_token(struct require_scan *scan, const struct lua_token *token)
{
    bool found = scan->seen != REQUIRE_NONE && token->kind == LUA_TOKEN_STRING;

    if (scan->seen == REQUIRE_NAME && lua_token_is(token, "("))
        scan->seen = REQUIRE_OPEN;
    else
        scan->seen = lua_token_is(token, "require") ? REQUIRE_NAME
                                                    : REQUIRE_NONE;
    return found;
}

static void read_tokens(struct source_set *set, struct source_file *file)
{
    struct lua_lexer lexer = {.source = file->text, .line = 1};
    struct require_scan scan = {REQUIRE_NONE};
    struct lua_token token;
    struct digest digest;

    digest_begin(&digest);
    for (lua_token_next(&lexer, &token); token.kind != LUA_TOKEN_END;
         lua_token_next(&lexer, &token)) {
        add_token(&digest, &token);
        if (scan_token(&scan, &token))
            want(set, file, token.text);
    }
    digest_end(&digest, file->digest);
    lua_lexer_free(&lexer);
}

static struct source_file *add_file(struct source_set *set, const char *chunk,
                                    struct text source)
{
    struct source_file *file = arena_alloc_zero(&set->arena, sizeof(*file));

    file->chunk = arena_string(&set->arena, text_of(chunk));
    file->text = arena_copy(&set->arena, source);
    file->next = set->files;
    set->files = file;
    return file;
}

void source_set_add(struct source_set *set, const char *chunk,
                    const char *module, struct text source)
{
    struct source_file *file = find_file(set, chunk);

    if (file == NULL) {
        file = add_file(set, chunk, source);
        read_tokens(set, file);
    }
    if (module != NULL)
        (void)source_set_add_module(set, module, file);
    else
        file->declares = true;
}

void source_set_add_other(struct source_set *set, const char *path,
                          struct text content)
{
    if (find_file(set, path) == NULL)
        add_file(set, path, content)->other = true;
}

void source_set_require(struct source_set *set, const char *chunk,
                        const char *module)
{
    struct source_file *file = set->sealed ? NULL : find_file(set, chunk);

    if (file != NULL)
        want(set, file, text_of(module));
}

struct text source_set_text(const struct source_set *set, const char *chunk)
{
    const struct source_file *file = find_file(set, chunk);

    return file != NULL ? file->text : TEXT_NONE;
}

bool source_set_late(const struct source_set *set, size_t n, const char **chunk,
                     struct text *source)
{
    for (const struct source_file *f = set->files; f != NULL; f = f->next) {
        if (!f->late || n-- > 0)
            continue;
        *chunk = f->chunk;
        *source = f->text;
        return true;
    }
    return false;
}

bool source_set_declaring(const struct source_set *set, size_t n,
                          const char **chunk, struct text *source)
{
    for (const struct source_file *f = set->files; f != NULL; f = f->next) {
        size_t before = 0;

        if (!f->declares)
            continue;
        for (const struct source_file *g = set->files; g != NULL; g = g->next)
            before += g->declares && strcmp(g->chunk, f->chunk) < 0;
        if (before != n)
            continue;
        *chunk = f->chunk;
        *source = f->text;
        return true;
    }
    return false;
}

bool source_set_is_sealed(const struct source_set *set)
{
    return set->sealed;
}

bool source_set_module(const struct source_set *set, const char *module,
                       const char **chunk, struct text *source)
{
    const struct module *found = find_module(set, module);

    if (found == NULL || found->file == NULL)
        return false;
    *chunk = found->file->chunk;
    *source = found->file->text;
    return true;
}

/* --- the version
 * -------------------------------------------------------------------------- */

static int compare_digests(const void *a, const void *b)
{
    return strcmp(((const struct source_digest *)a)->file,
                  ((const struct source_digest *)b)->file);
}

const struct source_digest *source_set_files(struct source_set *set,
                                             size_t *count)
{
    size_t n = 0;

    *count = set->ndigests;
    if (set->digests != NULL)
        return set->digests;
    for (const struct source_file *f = set->files; f != NULL; f = f->next)
        n++;
    set->digests = mem_alloc((n + 1) * sizeof(*set->digests));
    for (const struct source_file *f = set->files; f != NULL; f = f->next) {
        struct source_digest *made = &set->digests[set->ndigests++];
        struct digest digest;

        made->file = f->chunk;
        digest_begin(&digest);
        digest_text(&digest, f->text);
        digest_end(&digest, made->digest);
    }
    qsort(set->digests, n, sizeof(*set->digests), compare_digests);
    *count = n;
    return set->digests;
}

void source_set_version(struct source_set *set, char out[DIGEST_LEN + 1])
{
    size_t count;
    const struct source_digest *files = source_set_files(set, &count);
    struct digest digest;

    digest_begin(&digest);
    for (size_t i = 0; i < count; i++) {
        digest_text(&digest, text_of(files[i].file));
        digest_text(&digest, text_of(files[i].digest));
    }
    digest_end(&digest, out);
}

/* --- a file with all that it requires
 * -------------------------------------------------- */

/* The module's record; a file that nobody has required yet is read. */
static const struct module *module_of(struct source_set *set,
                                      const struct script_state *state,
                                      const char *name)
{
    const struct module *module = find_module(set, name);
    struct buffer source = BUFFER_EMPTY;
    char path[PATH_MAX], chunk[PATH_MAX];

    if (module != NULL)
        return module;
    if (!set->sealed && require_find(state, name, path)) {
        require_chunk_name(state, path, chunk, sizeof(chunk));
        if (find_file(set, chunk) == NULL &&
            buffer_read_file(&source, path, REQUIRE_SOURCE_LIMIT, NULL) ==
                STATUS_OK) {
            source_set_add(set, chunk, name, buffer_text(&source));
            set->files->late = true;
        } else if (find_file(set, chunk) != NULL) {
            source_set_add(set, chunk, name, TEXT_NONE);
        }
        buffer_free(&source);
    }
    return source_set_add_module(set, name, NULL);
}

struct reached {
    const struct module **modules; /* that have a file */
    size_t count, capacity;
};

static bool is_reached(const struct reached *reached,
                       const struct module *module)
{
    for (size_t i = 0; i < reached->count; i++)
        if (reached->modules[i] == module)
            return true;
    return false;
}

static void reach(struct source_set *set, const struct script_state *state,
                  const struct source_file *file, struct reached *reached)
{
    for (const struct wanted *wanted = file->wanted; wanted != NULL;
         wanted = wanted->next) {
        const struct module *module = module_of(set, state, wanted->module);

        if (module->file == NULL || is_reached(reached, module))
            continue;
        if (reached->count == reached->capacity) {
            reached->capacity = 2 * reached->count + 16;
            reached->modules = mem_grow(reached->modules, reached->capacity,
                                        sizeof(struct module *));
        }
        reached->modules[reached->count++] = module;
    }
}

void source_set_seal(struct source_set *set, const struct script_state *state)
{
    const struct source_file *first, *done = NULL;

    /* files that are read meanwhile come before those that were there */
    do {
        first = set->files;
        for (const struct source_file *f = first; f != done; f = f->next)
            for (const struct wanted *w = f->wanted; w != NULL; w = w->next)
                (void)module_of(set, state, w->module);
        done = first;
    } while (set->files != first);
    set->sealed = true;
}

static int compare_modules(const void *a, const void *b)
{
    return strcmp((*(const struct module *const *)a)->name,
                  (*(const struct module *const *)b)->name);
}

void source_set_digest(struct source_set *set, const struct script_state *state,
                       const char *chunk, char out[DIGEST_LEN + 1])
{
    const struct source_file *file = find_file(set, chunk);
    struct reached reached = {.count = 0};
    struct digest digest;

    digest_begin(&digest);
    if (file != NULL) {
        digest_text(&digest, text_of(file->digest));
        reach(set, state, file, &reached);
    }
    for (size_t i = 0; i < reached.count; i++)
        reach(set, state, reached.modules[i]->file, &reached);
    if (reached.count > 0)
        qsort(reached.modules, reached.count, sizeof(struct module *),
              compare_modules);
    for (size_t i = 0; i < reached.count; i++) {
        digest_text(&digest, text_of(reached.modules[i]->name));
        digest_text(&digest, text_of(reached.modules[i]->file->digest));
    }
    digest_end(&digest, out);
    mem_free(reached.modules);
}

void source_set_tokens(struct digest *digest, struct text source, size_t from,
                       size_t to)
{
    struct lua_lexer lexer = {.source = source, .line = 1};
    struct lua_token token;

    for (lua_token_next(&lexer, &token);
         token.kind != LUA_TOKEN_END && token.from < to;
         lua_token_next(&lexer, &token))
        if (token.from >= from)
            add_token(digest, &token);
    lua_lexer_free(&lexer);
}
