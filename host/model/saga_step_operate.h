/*
 * Saga step operate -- what an operator sees of the steps of a saga and tells
 * it to do about what it awaits. The database's rows are all that is needed:
 * the order lies in the saga's deadline, which is made due, and whoever holds
 * the saga's partition carries it out, now or once a host runs.
 */
#ifndef HOST_MODEL_SAGA_STEP_OPERATE_H
#define HOST_MODEL_SAGA_STEP_OPERATE_H

#include "consumer/operate.h"
#include "model/saga_steps.h"

/** Which saga. */
struct saga_step_subject {
    struct text saga_type;
    struct text saga_id;
};

enum saga_step_order {
    SAGA_STEP_RETRY,   /* send what is awaited again now */
    SAGA_STEP_CONFIRM, /* what is awaited of the step was done */
};

/** Reads the steps of a saga, none when it has none, in a transaction of its
 * own. Rows live in `arena`. */
enum status saga_step_operate_read(const struct operate_env *env,
                                   const struct saga_step_subject *subject,
                                   struct arena *arena,
                                   struct saga_steps *steps,
                                   struct diag *diag) MUST_CHECK;

/**
 * Gives the order. `step` is needed to confirm. *awaited is the row it is about
 * (in `arena`). FAILED: there is no such saga with steps, or what it awaits is
 * nothing, or of another step.
 */
enum status saga_step_operate(const struct operate_env *env,
                              const struct saga_step_subject *subject,
                              enum saga_step_order order, struct text step,
                              struct arena *arena,
                              struct saga_step_row *awaited,
                              struct diag *diag) MUST_CHECK;

/** Appends a JSON list of the rows. */
void saga_step_operate_json(struct buffer *out, const struct saga_steps *steps);

#endif
