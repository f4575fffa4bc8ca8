/*
 * Operate deadlines -- what an operator sees of the deadlines of sagas and does
 * to them, whether a host runs or not: who holds the saga's partition fires
 * what was made due, when it looks (consumer/fire.h). The numbers of the verbs
 * stand in the statements deadlines_last and deadlines_page_end.
 */
#ifndef HOST_CONSUMER_OPERATE_DEADLINES_H
#define HOST_CONSUMER_OPERATE_DEADLINES_H

#include "consumer/deadline.h"
#include "consumer/operate.h"

/** Which ones; NULL or 0: any. Borrowed. */
struct deadline_filter {
    const char *id; /* of the row */
    const char *type;
    const char *saga_id;
    const char *name;
    const char *status;
    int64_t due_before;
};

/** Whether anything is asked for. */
bool deadline_filter_narrows(const struct deadline_filter *filter);

/** One of them; slices live in the arena given. */
struct deadline_listed {
    struct deadline deadline; /* `message` has the metadata only */
    struct text type;
    enum deadline_status status;
};

struct deadline_list {
    struct deadline_listed *items;
    size_t count;
    int64_t total; /* that match */
};

/** The first `limit` by due time, in a transaction of its own. */
enum status operate_deadlines_list(const struct operate_env *env,
                                   const struct deadline_filter *filter,
                                   size_t limit, struct arena *arena,
                                   struct deadline_list *list,
                                   struct diag *diag) MUST_CHECK;

/** How many there are, in the caller's transaction. */
enum status operate_deadlines_count(const struct operate_env *env,
                                    const struct deadline_filter *filter,
                                    int64_t *total,
                                    struct diag *diag) MUST_CHECK;

enum deadline_order {
    DEADLINE_FIRE,   /* due now, unless they are; of dead letters nothing is
                      * changed */
    DEADLINE_RETRY,  /* those that failed get a fresh budget, and are due */
    DEADLINE_DELETE, /* they never fire; those of the host stay */
};

struct deadline_changed {
    int64_t changed;
    int64_t dead;    /* FIRE: dead letters that match */
    int64_t of_host; /* DELETE: DEADLINE_OF_HOST, left alone */
};

/** In transactions of OPERATION_ROWS rows (consumer/operation_walk.h). */
enum status operate_deadlines_change(const struct operate_env *env,
                                     const struct deadline_filter *filter,
                                     enum deadline_order order,
                                     struct deadline_changed *changed,
                                     struct diag *diag) MUST_CHECK;

/** {"deadlines": [...], "total": n}, appended; `whole`: with payload and
 * metadata. */
void operate_deadlines_json(struct buffer *out,
                            const struct deadline_list *list, bool whole);

#endif
