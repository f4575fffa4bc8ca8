/*
 * Saga list -- what an operator sees of sagas: which there are, and one of them
 * as it is stored. Reads only.
 */
#ifndef HOST_MODEL_SAGA_LIST_H
#define HOST_MODEL_SAGA_LIST_H

#include "model/saga_instance.h"

/** Which ones. Borrowed. */
struct saga_filter {
    const char *type;       /* NULL: any */
    const char *saga_id;    /* NULL: any */
    bool active, completed; /* neither: both */
};

/** Slices live in the arena given; the state of `instance` is not read. */
struct saga_listed {
    struct text type;
    struct saga_instance instance;
};

struct saga_list {
    struct saga_listed *items;
    size_t count;
    int64_t total; /* that match */
};

/** The first `limit` by type and id. */
enum status saga_list_read(struct db *db, const struct catalog *catalog,
                           const struct saga_filter *filter, size_t limit,
                           struct arena *arena, struct saga_list *list,
                           struct diag *diag) MUST_CHECK;

/** When an instance was begun, by the time in its id; microseconds. */
int64_t saga_begun_at(const struct uuid *id);

#endif
