/*
 * Table set -- which tables a walk over a value has been to, by address. The
 * tables must stay alive until it is cleared. Knows nothing of Lua.
 */
#ifndef HOST_SCRIPT_TABLE_SET_H
#define HOST_SCRIPT_TABLE_SET_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_SET_FEW 32

struct table_set {
    const void *few[TABLE_SET_FEW]; /* while there are no more */
    const void **slots;             /* then all; open addressing */
    size_t capacity;                /* a power of two; 0: no slots yet */
    size_t count;
};

/** False when it is in there already. */
bool table_set_add(struct table_set *set, const void *table);

/** Forgets what was added; keeps memory for a usual number of tables. */
void table_set_clear(struct table_set *set);
void table_set_free(struct table_set *set);

#endif
