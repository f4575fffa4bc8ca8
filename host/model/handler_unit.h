/*
 * Handler unit -- the calls of a declaration's functions that are the same for
 * every kind of projection: its key function and its error policy.
 */
#ifndef HOST_MODEL_HANDLER_UNIT_H
#define HOST_MODEL_HANDLER_UNIT_H

#include "consumer/applier.h"
#include "model/handler.h"

/** As applier_ops.keys. */
enum status handler_unit_keys(const struct handler *handler,
                              const struct declaration *declaration,
                              const struct message *message, int attempt,
                              applier_key_fn emit, void *arg,
                              struct failure *failure) MUST_CHECK;

/** As applier_ops.on_error. */
enum status handler_unit_on_error(const struct handler *handler,
                                  const struct declaration *declaration,
                                  const struct unit *unit, int failures,
                                  const struct failure *failure,
                                  enum error_policy *policy,
                                  struct failure *refused) MUST_CHECK;

#endif
