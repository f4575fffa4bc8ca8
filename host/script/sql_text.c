#include "script/sql_text.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "db/placeholder.h"

#include <strings.h>

#define KEPT_MAX 512 /* statements that survive a batch */

/* One allocation: the statement, its text as written, its text rewritten. */
static struct sql_text *make(struct text written, struct text rewritten,
                             size_t parameters)
{
    struct sql_text *item = mem_alloc(sizeof(*item) + written.len +
                                      rewritten.len + 1);
    char *bytes = (char *)(item + 1);

    memcpy(bytes, written.data, written.len);
    memcpy(bytes + written.len, rewritten.data, rewritten.len);
    item->sql = db_sql_make((struct text){bytes + written.len, rewritten.len},
                            DB_SCRIPT);
    item->parameters = parameters;
    return item;
}

enum status sql_text_find(struct sql_texts *texts, struct text text,
                          const char *dialect, const struct sql_text **found,
                          struct diag *diag)
{
    struct buffer rewritten = BUFFER_EMPTY;
    struct sql_text *item;
    size_t parameters;
    bool added;
    enum status status;
    int64_t at = map_get(&texts->index, text);

    if (at != MAP_ABSENT) {
        *found = texts->items[at];
        return STATUS_OK;
    }
    status = placeholder_rewrite(text, dialect, &rewritten, &parameters, diag);
    if (status != STATUS_OK) {
        buffer_free(&rewritten);
        return status;
    }
    item = make(text, buffer_text(&rewritten), parameters);
    buffer_free(&rewritten);
    if (texts->count == texts->capacity) {
        texts->capacity = texts->capacity == 0 ? 16 : 2 * texts->capacity;
        texts->items = mem_grow(texts->items, texts->capacity,
                                sizeof(struct sql_text *));
    }
    map_put(&texts->index, (struct text){(char *)(item + 1), text.len},
            (int64_t)texts->count, &added);
    texts->items[texts->count++] = item;
    *found = item;
    return STATUS_OK;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           ((unsigned char)c & 0x80) != 0;
}

/* The quoted name that begins at `at`; NULL data when it is none. */
static struct text quoted_name(const char *at, const char *end)
{
    char close = *at == '[' ? ']' : *at;
    struct text name = {at + 1, 0};
    const char *last;

    if (*at != '"' && *at != '`' && *at != '[')
        return TEXT_NONE;
    last = memchr(name.data, close, (size_t)(end - name.data));
    name.len = (size_t)((last != NULL ? last : end) - name.data);
    return name;
}

/* Behind the comment or string that begins at `at`; `at` for anything else. */
static const char *skip_quiet(const char *at, const char *end)
{
    const char *close;

    if (end - at < 2)
        return at;
    if (*at == '\'')
        close = memchr(at + 1, '\'', (size_t)(end - at - 1));
    else if (at[0] == '-' && at[1] == '-')
        close = memchr(at, '\n', (size_t)(end - at));
    else if (at[0] == '/' && at[1] == '*') {
        close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
        close = close != NULL ? close + 1 : NULL;
    } else
        return at;
    return close != NULL ? close + 1 : end;
}

/* Behind the next name, or behind one character that is in none: `name` has
 * NULL data then. */
static const char *next_name(const char *at, const char *end, struct text *name)
{
    const char *behind = skip_quiet(at, end);

    *name = TEXT_NONE;
    if (behind != at)
        return behind;
    *name = quoted_name(at, end);
    if (name->data != NULL)
        return name->data + name->len + 1;
    while (behind < end && is_word(*behind))
        behind++;
    if (behind == at)
        return at + 1;
    *name = (struct text){at, (size_t)(behind - at)};
    return behind;
}

static bool is(struct text name, const char *word)
{
    return name.data != NULL && name.len == strlen(word) &&
           strncasecmp(name.data, word, name.len) == 0;
}

bool sql_text_names(struct text sql, const char *table)
{
    const char *at = sql.data, *end = at + sql.len;
    struct text name = TEXT_NONE;

    while (at < end && !is(name, table))
        at = next_name(at, end, &name);
    return is(name, table);
}

/* Words between CREATE and the name that make no other thing of it. */
static bool is_between(struct text name, bool table)
{
    if (table)
        return is(name, "if") || is(name, "not") || is(name, "exists");
    return is(name, "unlogged") || is(name, "or") || is(name, "replace");
}

bool sql_text_next_table(struct text *rest, struct text *table)
{
    const char *at = rest->data, *end = at + rest->len;
    bool create = false, of_table = false;

    while (at < end) {
        struct text name;

        at = next_name(at, end, &name);
        if (name.data == NULL || is_between(name, of_table))
            continue;
        if (!of_table) {
            of_table = create && is(name, "table");
            create = is(name, "create");
            continue;
        }
        create = of_table = false;
        if (at < end && *at == '.') /* of another schema */
            continue;
        *table = name;
        *rest = (struct text){at, (size_t)(end - at)};
        return true;
    }
    return false;
}

static void forget(struct sql_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        mem_free(texts->items[i]);
    texts->count = 0;
    map_clear(&texts->index);
}

void sql_text_trim(struct sql_texts *texts)
{
    if (texts->count > KEPT_MAX)
        forget(texts);
}

void sql_text_free(struct sql_texts *texts)
{
    forget(texts);
    map_free(&texts->index);
    mem_free(texts->items);
    *texts = (struct sql_texts){NULL, 0, 0, MAP_EMPTY};
}
