/*
 * Check saga -- what `moontide check` says of a saga beyond what it says of
 * every consumer.
 */
#ifndef HOST_CLI_CHECK_SAGA_H
#define HOST_CLI_CHECK_SAGA_H

#include "base/buffer.h"
#include "model/declaration.h"

/** Appends lines for people, or members of the JSON object. */
void check_saga_print(struct buffer *out, const struct declaration *saga);
void check_saga_write(struct buffer *out, bool *first,
                      const struct declaration *saga);

#endif
