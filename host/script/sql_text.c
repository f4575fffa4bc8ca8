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

bool sql_text_names(struct text sql, const char *table)
{
    const char *at = sql.data, *end = at + sql.len;
    size_t len = strlen(table);

    while (at < end) {
        const char *behind = skip_quiet(at, end);
        struct text name = quoted_name(at, end);

        if (behind != at) {
            at = behind;
            continue;
        }
        if (name.data != NULL) {
            at = name.data + name.len + 1;
        } else {
            name.data = at;
            while (at < end && is_word(*at))
                at++;
            name.len = (size_t)(at - name.data);
            at += name.len == 0;
        }
        if (name.len == len && strncasecmp(name.data, table, len) == 0)
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
