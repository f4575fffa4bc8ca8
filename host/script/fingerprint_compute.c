#include "script/fingerprint_compute.h"

#include "base/memory.h"
#include "db/placeholder.h"
#include "script/lua_token.h"
#include "script/source_set.h"

#include <stdlib.h>

static void end_part(struct digest *digest, struct declaration *declaration,
                     enum fingerprint_part part)
{
    digest_end(digest, declaration->fingerprint.part[part]);
}

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a, *right = b;

    return text_compare(*left, *right);
}

/* A list whose order means nothing. */
static void add_sorted(struct digest *digest, const struct text *texts,
                       size_t count)
{
    struct text *sorted = mem_grow(NULL, count + 1, sizeof(*sorted));

    if (count > 0) {
        memcpy(sorted, texts, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare_texts);
    }
    digest_integer(digest, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        digest_text(digest, sorted[i]);
    mem_free(sorted);
}

static void compute_sources(struct declaration *declaration)
{
    struct digest digest;

    digest_begin(&digest);
    digest_text(&digest, text_of(declaration->source));
    add_sorted(&digest, declaration->aggregates, declaration->naggregates);
    add_sorted(&digest, declaration->stored, declaration->nstored);
    end_part(&digest, declaration, FINGERPRINT_SOURCES);
}

/* --- the key function's own text
 * ----------------------------------------------------------- */

/* One `function ... end`, as bytes of its file. */
struct function {
    size_t from, to;
    int line, open_line; /* of the word, and of its "(" */
    bool is_key;         /* stands behind "key =" */
    int depth;           /* of blocks around it */
};

#define FUNCTIONS_MAX 64 /* that are open at once */

struct function_scan {
    int first, last; /* lines, as Lua tells them */
    struct function open[FUNCTIONS_MAX];
    size_t nopen;
    struct function any, key; /* the last one on these lines; behind "key =" */
    size_t nany, nkey;
    int depth;
};

static bool opens_block(const struct lua_token *token)
{
    return lua_token_is(token, "function") || lua_token_is(token, "do") ||
           lua_token_is(token, "if") || lua_token_is(token, "repeat");
}

static void close_block(struct function_scan *scan,
                        const struct lua_token *token)
{
    struct function *function;

    scan->depth--;
    if (scan->nopen == 0 || scan->open[scan->nopen - 1].depth != scan->depth)
        return;
    function = &scan->open[--scan->nopen];
    function->to = token->to;
    if ((function->line != scan->first && function->open_line != scan->first) ||
        token->line != scan->last)
        return;
    scan->any = *function;
    scan->nany++;
    if (!function->is_key)
        return;
    scan->key = *function;
    scan->nkey++;
}

/*
 * Finds the function that Lua says lies on these lines. Where several do, the
 * one behind "key =" is meant; false when it cannot be told.
 */
static bool find_function(struct text source, int first, int last,
                          struct function *found)
{
    struct function_scan scan = {.first = first, .last = last};
    struct lua_lexer lexer = {.source = source, .line = 1};
    struct lua_token token;
    int behind_key = 0; /* 1: the word was seen, 2: "=" behind it */

    for (lua_token_next(&lexer, &token);
         token.kind != LUA_TOKEN_END && token.line <= last;
         lua_token_next(&lexer, &token)) {
        if (scan.nopen > 0 && scan.open[scan.nopen - 1].open_line == 0 &&
            lua_token_is(&token, "("))
            scan.open[scan.nopen - 1].open_line = token.line;
        if (lua_token_is(&token, "function") && scan.nopen < FUNCTIONS_MAX)
            scan.open[scan.nopen++] = (struct function){
                .from = token.from,
                .line = token.line,
                .is_key = behind_key == 2,
                .depth = scan.depth,
            };
        if (opens_block(&token))
            scan.depth++;
        else if (lua_token_is(&token, "end") || lua_token_is(&token, "until"))
            close_block(&scan, &token);
        if (lua_token_is(&token, "key"))
            behind_key = 1;
        else
            behind_key = behind_key == 1 && lua_token_is(&token, "=") ? 2 : 0;
    }
    lua_lexer_free(&lexer);
    *found = scan.nkey == 1 ? scan.key : scan.any;
    return scan.nkey == 1 || scan.nany == 1;
}

static size_t line_start(struct text source, int line)
{
    struct lua_lexer lexer = {.source = source, .line = 1};
    struct lua_token token;

    do
        lua_token_next(&lexer, &token);
    while (token.kind != LUA_TOKEN_END && token.line < line);
    lua_lexer_free(&lexer);
    return token.from;
}

/* The tokens of the function; of all its lines where it shares them with
 * others. */
static void add_function(lua_State *L, struct digest *digest, int reference)
{
    const struct script_state *state = script_state_of(L);
    struct function function;
    struct text source;
    lua_Debug info;

    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    if (lua_getinfo(L, ">S", &info) == 0 || *info.what == 'C') {
        digest_text(digest, TEXT_LITERAL("a function of the host"));
        return;
    }
    source = *info.source == '@'
                 ? source_set_text(state->sources, info.source + 1)
                 : text_of(info.source);
    if (!find_function(source, info.linedefined, info.lastlinedefined,
                       &function)) {
        function.from = line_start(source, info.linedefined);
        function.to = line_start(source, info.lastlinedefined + 1);
    }
    source_set_tokens(digest, source, function.from, function.to);
}

static void compute_key(lua_State *L, struct declaration *declaration,
                        const struct fingerprint_code *code, int partitions)
{
    struct digest digest;

    digest_begin(&digest);
    digest_integer(&digest, partitions);
    digest_text(&digest, text_of(code->key_field));
    digest_integer(&digest, code->key != LUA_NOREF);
    if (code->key != LUA_NOREF && code->key_field == NULL)
        add_function(L, &digest, code->key);
    end_part(&digest, declaration, FINGERPRINT_KEY);
}

/* --- shape
 * ----------------------------------------------------------------------------
 */

static void add_field(struct digest *digest,
                      const struct declaration_field *field)
{
    size_t words = 0;

    digest_text(digest, text_of(field->name));
    digest_text(digest, text_of(declaration_field_word(field->type)));
    digest_integer(digest, field->precision);
    digest_integer(digest, field->scale);
    digest_integer(digest, field->unique);
    digest_integer(digest, field->optional);
    while (field->values != NULL && field->values[words] != NULL)
        digest_text(digest, text_of(field->values[words++]));
    digest_integer(digest, (int64_t)words);
}

static void add_tables(struct digest *digest, struct text sql,
                       const char *dialect)
{
    struct buffer tokens = BUFFER_EMPTY;

    placeholder_tokens(sql, dialect, &tokens);
    digest_text(digest, buffer_text(&tokens));
    buffer_free(&tokens);
}

static void compute_shape(struct declaration *declaration, const char *dialect)
{
    struct digest digest;

    digest_begin(&digest);
    digest_text(&digest, text_of(declaration_kind_word(declaration->kind)));
    digest_text(&digest, text_of(declaration->table));
    digest_integer(&digest, (int64_t)declaration->nfields);
    for (size_t i = 0; i < declaration->nfields; i++)
        add_field(&digest, &declaration->fields[i]);
    if (declaration->tables_file != NULL)
        add_tables(&digest, declaration->tables_sql, dialect);
    end_part(&digest, declaration, FINGERPRINT_SHAPE);
}

/* --- code
 * ----------------------------------------------------------------------------
 */

static bool has_text(const struct text *list, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].data, text) == 0)
            return true;
    return false;
}

/* The declaration's file; the files of its event types, whose steps make what
 * its handlers see, count like a file that it requires. */
static void compute_code(lua_State *L, struct declaration *declaration,
                         const char *file, const struct declare_set *set)
{
    const struct script_state *state = script_state_of(L);
    const struct event_types *types = &set->event_types;
    struct text *digests = mem_alloc((types->count + 1) * sizeof(*digests));
    char digest[DIGEST_LEN + 1], other[DIGEST_LEN + 1];
    struct digest all;
    size_t count = 0;

    source_set_digest(state->sources, state, file, digest);
    for (size_t i = 0; i < declaration->nstored; i++) {
        const struct event_type *type = event_types_find(
            types, declaration->stored[i]);

        if (type == NULL)
            continue;
        source_set_digest(state->sources, state, type->returned_by, other);
        if (strcmp(other, digest) != 0 && !has_text(digests, count, other))
            digests[count++] = arena_copy(set->arena, text_of(other));
    }
    if (count > 0) {
        digest_begin(&all);
        digest_text(&all, text_of(digest));
        add_sorted(&all, digests, count);
        digest_end(&all, digest);
    }
    mem_free(digests);
    fingerprint_set_code(&declaration->fingerprint, declaration->revision,
                         digest);
}

void fingerprint_compute(lua_State *L, struct declaration *declaration,
                         const struct fingerprint_code *code,
                         const struct declare_set *set)
{
    compute_sources(declaration);
    compute_key(L, declaration, code, set->partitions);
    compute_shape(declaration, set->dialect);
    compute_code(L, declaration, code->file, set);
}
