#include "model/handler_unit.h"

enum status handler_unit_keys(const struct handler *handler,
                              const struct declaration *declaration,
                              const struct message *message, int attempt,
                              applier_key_fn emit, void *arg,
                              struct failure *failure)
{
    const struct handler_call call = {
        .declaration = declaration,
        .message = message,
        .attempt = attempt,
    };

    return handler->ops->keys(handler->code, &call, emit, arg, failure);
}

enum status handler_unit_on_error(const struct handler *handler,
                                  const struct declaration *declaration,
                                  const struct unit *unit, int failures,
                                  const struct failure *failure,
                                  enum error_policy *policy,
                                  struct failure *refused)
{
    const struct handler_call call = {
        .declaration = declaration,
        .message = unit->message,
        .key = unit->key,
        .partition = unit->partition,
        .attempt = unit->attempt,
    };

    return handler->ops->on_error(handler->code, &call, failures, failure,
                                  policy, refused);
}
