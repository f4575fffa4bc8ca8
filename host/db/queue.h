/*
 * Queue -- the statements of a transaction that have not gone out, in order.
 *
 * Places in it are counted from the connection's first statement on, so a mark
 * stays comparable after parts of the queue were sent. Parameters are copied
 * into an arena that is emptied with the queue; rows of bulk statements are
 * borrowed. Only db/db.c uses it; drivers see the array of items.
 */
#ifndef HOST_DB_QUEUE_H
#define HOST_DB_QUEUE_H

#include "base/arena.h"
#include "db/driver.h"

struct queue {
    struct db_queued *items;
    size_t count;
    size_t capacity;
    size_t sent; /* statements that left, one way or another */
    struct arena arena;
};

void queue_statement(struct queue *queue, const struct db_sql *sql,
                     const struct db_value *params, size_t nparams,
                     int64_t expect, int64_t tag);
void queue_bulk(struct queue *queue, enum db_bulk what,
                const struct db_table *table, const struct db_value *values,
                size_t nrows, int64_t tag);

/** All items left: whatever happened to them, they cannot be dropped now. */
void queue_sent(struct queue *queue);
/** Counts a statement that ran without being queued. */
void queue_skip(struct queue *queue);
/** Forgets what is there; marks set before are not held any more. */
void queue_clear(struct queue *queue);
void queue_free(struct queue *queue);

size_t queue_mark(const struct queue *queue);
bool queue_holds(const struct queue *queue, size_t mark);
/** Forgets the items after `mark`, which the queue must hold. */
void queue_drop(struct queue *queue, size_t mark);

#endif
