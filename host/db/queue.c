#include "db/queue.h"

#include "base/memory.h"

#include <assert.h>

static struct db_queued *new_item(struct queue *queue)
{
    struct db_queued *item;

    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity == 0 ? 64 : 2 * queue->capacity;
        queue->items = mem_grow(queue->items, queue->capacity,
                                sizeof(*queue->items));
    }
    item = &queue->items[queue->count++];
    *item = (struct db_queued){.expect = DB_ANY_ROWS};
    return item;
}

static void copy_value(struct arena *arena, struct db_value *to,
                       const struct db_value *from)
{
    *to = *from;
    if (from->type == DB_TEXT || from->type == DB_BYTES ||
        from->type == DB_DECIMAL) {
        to->as.text = arena_copy(arena, from->as.text);
    } else if (from->type == DB_INT64_ARRAY && from->as.integers.count > 0) {
        size_t size = from->as.integers.count * sizeof(int64_t);
        int64_t *items = arena_alloc(arena, size);

        memcpy(items, from->as.integers.items, size);
        to->as.integers.items = items;
    } else if (from->type == DB_TEXT_ARRAY && from->as.texts.count > 0) {
        size_t count = from->as.texts.count;
        struct text *items = arena_alloc(arena, count * sizeof(*items));

        for (size_t i = 0; i < count; i++)
            items[i] = from->as.texts.items[i].data == NULL
                           ? TEXT_NONE
                           : arena_copy(arena, from->as.texts.items[i]);
        to->as.texts.items = items;
    }
}

void queue_statement(struct queue *queue, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams,
                     int64_t expect, int64_t tag)
{
    struct db_queued *item = new_item(queue);
    struct db_value *copy = NULL;

    if (nparams > 0) {
        copy = arena_alloc(&queue->arena, nparams * sizeof(*copy));
        for (size_t i = 0; i < nparams; i++)
            copy_value(&queue->arena, &copy[i], &params[i]);
    }
    item->sql = *sql;
    item->values = copy;
    item->count = nparams;
    item->expect = expect;
    item->tag = tag;
}

void queue_bulk(struct queue *queue, enum db_bulk what,
                const struct db_table *table, const struct db_value *values,
                size_t nrows, int64_t tag)
{
    struct db_queued *item = new_item(queue);

    item->bulk = true;
    item->what = what;
    item->table = table;
    item->values = values;
    item->count = nrows;
    item->tag = tag;
}

void queue_sent(struct queue *queue)
{
    queue->sent += queue->count;
    queue->count = 0;
    arena_reset(&queue->arena);
}

void queue_skip(struct queue *queue)
{
    assert(queue->count == 0);
    queue->sent++;
}

void queue_clear(struct queue *queue)
{
    queue_sent(queue);
    queue->sent++;
}

void queue_free(struct queue *queue)
{
    mem_free(queue->items);
    arena_free(&queue->arena);
    *queue = (struct queue){0};
}

size_t queue_mark(const struct queue *queue)
{
    return queue->sent + queue->count;
}

bool queue_holds(const struct queue *queue, size_t mark)
{
    return mark >= queue->sent && mark <= queue->sent + queue->count;
}

void queue_drop(struct queue *queue, size_t mark)
{
    assert(queue_holds(queue, mark));
    if (queue_holds(queue, mark))
        queue->count = mark - queue->sent;
}
