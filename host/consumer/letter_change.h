/*
 * Letter change -- what an operator's transaction writes about letters: a
 * fresh budget, or a skip in place of the rows. Followers of a letter need no
 * write: what no head holds is due.
 */
#ifndef HOST_CONSUMER_LETTER_CHANGE_H
#define HOST_CONSUMER_LETTER_CHANGE_H

#include "consumer/letter.h"
#include "consumer/operate.h"

/** Makes the rows FAILED with a fresh budget, due at once. */
enum status letters_retry(const struct operate_env *env,
                          const struct letters *letters, struct arena *arena,
                          struct diag *diag) MUST_CHECK;

/**
 * Deletes the rows and records skips, for their keys or for every key of the
 * messages; then what the messages left for other keys is deleted as well. All
 * are of one consumer and topic. *deleted counts rows.
 */
enum status letters_skip(const struct operate_env *env,
                         const struct letters *letters, bool every_key,
                         struct arena *arena, int64_t *deleted,
                         struct diag *diag) MUST_CHECK;

#endif
