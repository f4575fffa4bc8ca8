/*
 * Effects unit -- what is the same of all appliers whose handlers cause
 * effects: the check of what one call has emitted, and the end of a batch,
 * where its effects are written behind the statements of the handlers.
 */
#ifndef HOST_MODEL_EFFECTS_UNIT_H
#define HOST_MODEL_EFFECTS_UNIT_H

#include "model/effects.h"
#include "model/handler.h"

/** Checks what the running call has emitted by the script's event types, whose
 * code must not run while a handler does. FAILED with *failure. */
enum status effects_unit_check(struct effects *effects,
                               const struct handler *handler,
                               struct failure *failure) MUST_CHECK;

/** "script:line" of a statement in the queue by its tag, or "". */
typedef const char *(*effects_where_fn)(void *arg, int64_t tag);

/** Writes the effects of the batch, if there are any. The queue is sent before:
 * whose fault a refused statement is can only be told here. FAILED with
 * *failure. `time_limit` is what queued statements may take, microseconds. */
enum status effects_unit_send(struct effects *effects, struct db *db,
                              int64_t time_limit, effects_where_fn where,
                              void *arg, struct failure *failure,
                              struct diag *diag) MUST_CHECK;

#endif
