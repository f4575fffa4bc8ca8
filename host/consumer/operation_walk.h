/*
 * Operation walk -- a verb that changes very many rows of one table: by their
 * ids, OPERATION_ROWS in a transaction. Ids rise with time, and the walk ends
 * at the highest that was there when it began: what is added meanwhile, by what
 * the verb itself has set going, too, is not meant.
 */
#ifndef HOST_CONSUMER_OPERATION_WALK_H
#define HOST_CONSUMER_OPERATION_WALK_H

#include "consumer/operate.h"

/** The statements of it, with their parameters. Borrowed. */
struct operation_walk {
    /** What is to be changed. `last` gives the highest id of it; `page_end`
     * has, behind these parameters, the id after which to begin, the highest
     * one, and how many rows more than one: it gives the id of the last of so
     * many rows, no row when there are not so many. */
    enum sql_statement last;
    enum sql_statement page_end;
    const struct db_value *find;
    size_t nfind;
    /** Changes it; behind these parameters, from which id (without it) to
     * which. */
    enum sql_statement change;
    const struct db_value *values;
    size_t nvalues;
    const char *done; /* "deadlines were deleted" */
};

/** Parameters of each kind at most. */
#define OPERATION_WALK_PARAMS 8

/** Statuses as those of the verbs (consumer/operate.h); what was changed before
 * a failure stays, is told with it, and a repeat goes on with the rest. */
enum status operation_walk_run(const struct operate_env *env,
                               const struct operation_walk *walk,
                               int64_t *changed, struct diag *diag) MUST_CHECK;

#endif
