/*
 * Placeholder -- rewrites the `?` of a script's SQL to the dialect's style.
 *
 * A tokenizer that knows strings, quoted identifiers, comments, casts and
 * dollar quotes; `??` is a literal question mark.
 */
#ifndef HOST_DB_PLACEHOLDER_H
#define HOST_DB_PLACEHOLDER_H

#include "base/buffer.h"
#include "base/status.h"

/** INVALID for an unterminated string, comment or quote, with its offset.
 * *count is the number of parameters. */
enum status placeholder_rewrite(struct text sql, const char *dialect,
                                struct buffer *out, size_t *count,
                                struct diag *diag) MUST_CHECK;

/** Appends the tokens, each with a NUL behind it, without white space and
 * comments: equal for texts that differ only in these. What does not end is
 * one token; an unknown dialect gives the text as it is. */
void placeholder_tokens(struct text sql, const char *dialect,
                        struct buffer *out);

#endif
