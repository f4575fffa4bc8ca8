/*
 * Bare, deadlines -- one page of the order saga in memory: what is due, and the
 * sagas' rows. Each saga has one deadline.
 */
#ifndef BENCH_BARE_DEADLINES_H
#define BENCH_BARE_DEADLINES_H

#include "bare.h"

#define SAGA_TYPE "order-saga"

struct due {
    char id[37]; /* of the deadline: text, or 16 bytes */
    char saga[64];
    int saga_size;
    int64_t step;
    /* the saga's row */
    char row[37];
    int64_t version, late;
};

static struct due dues[BARE_BATCH];

static inline void due_take(struct due *due, struct slice saga,
                            const char *payload)
{
    memcpy(due->saga, saga.data, (size_t)saga.size);
    due->saga_size = saga.size;
    due->step = bare_number(payload, "\"step\":");
}

static inline struct slice due_saga(const struct due *due)
{
    return (struct slice){due->saga, due->saga_size};
}

static inline int due_state(const struct due *due, char out[64])
{
    return snprintf(out, 64, "{\"late\":%lld}",
                    (long long)(due->late + due->step));
}

static inline void due_row(struct due *due, int64_t version, const char *state)
{
    due->version = version;
    due->late = bare_number(state, "\"late\":");
}

#endif
