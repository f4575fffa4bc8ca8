/*
 * Materialize -- one read model of a keyed projection, computed from its
 * messages by the handlers as they are now, beside the one that is stored.
 * Nothing is written.
 *
 * Messages of a key that is the message's own are found by way of an index;
 * where the declaration has a key function every message that it wants is read,
 * and asked for its keys.
 */
#ifndef HOST_RUN_MATERIALIZE_H
#define HOST_RUN_MATERIALIZE_H

#include "base/arena.h"
#include "run/application.h"

/** How far reading has come, of positions. */
typedef void (*materialize_fn)(void *arg, int64_t done, int64_t total);

struct materialize_request {
    const struct declaration *declaration;
    struct text key;
    materialize_fn progress; /* may be NULL */
    void *arg;
};

/** States are JSON; NULL data: there is no read model. */
struct materialized {
    struct arena arena;
    struct text state; /* as all messages up to `position` give it */
    int64_t position;
    int64_t messages; /* of the key, so many */
    struct text stored;
    int64_t stored_position; /* it has seen everything up to here */
    struct text expected;    /* as messages up to there give it */
    /** Why `stored` and `expected` are not to be compared, a clause; NULL: they
     * are. */
    const char *incomparable;
};

/** USAGE: the declaration keeps no read models. FAILED: a handler failed, or
 * the keys of a message cannot be told (names the message). On failure nothing
 * is owed, else materialized_free. */
enum status materialize(struct application *app,
                        const struct materialize_request *request,
                        struct materialized *result,
                        struct diag *diag) MUST_CHECK;
void materialized_free(struct materialized *result);

/** Whether the stored one is what its messages give, or nobody can say. */
bool materialized_fits(const struct materialized *result);

#endif
