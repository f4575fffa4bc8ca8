#include "script/sql_text.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "db/placeholder.h"

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
