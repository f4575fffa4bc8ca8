/*
 * Saga declared -- whether a declaration still has the steps that its sagas
 * need. The answer to a step that is not declared is of no wanted type, and
 * would be passed over in silence: such a consumer must not run.
 */
#ifndef HOST_MODEL_SAGA_DECLARED_H
#define HOST_MODEL_SAGA_DECLARED_H

#include "db/catalog.h"
#include "db/db.h"
#include "model/declaration.h"
#include "model/saga_steps.h"

/** Whether a step of a saga is needed and not declared: it awaits an answer,
 * or may have to be undone. `missing` gets a sentence about the first one,
 * and stays as it is when there is none, or when the declaration is not of a
 * saga. One round trip. */
enum status saga_declared_look(struct db *db, const struct catalog *catalog,
                               const struct declaration *declaration,
                               struct buffer *missing,
                               struct diag *diag) MUST_CHECK;

/** The same of a declaration that is to be worked by. REFUSED: one is missing;
 * the message says where it is not declared. */
enum status saga_declared_check(struct db *db, const struct catalog *catalog,
                                const struct declaration *declaration,
                                struct diag *diag) MUST_CHECK;

/** Whether a row awaits what its step is not declared to be answered by, or
 * nothing of that kind. */
bool saga_declared_lacks(const struct saga_steps *steps,
                         const struct saga_step_row *row);

/** The sentence about one. */
void saga_declared_describe(struct text saga_id, struct text step,
                            struct text state, struct buffer *out);

#endif
