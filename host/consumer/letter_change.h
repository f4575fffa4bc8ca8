/*
 * Letter change -- what an operator's transaction writes about letters: a
 * fresh budget, or a skip in place of the rows. Followers of a letter need no
 * write: what no head holds is due.
 */
#ifndef HOST_CONSUMER_LETTER_CHANGE_H
#define HOST_CONSUMER_LETTER_CHANGE_H

#include "consumer/letter.h"

/** Makes the rows FAILED with a fresh budget, due at once. */
enum status letters_retry(struct db *db, const struct catalog *catalog,
                          const struct letters *letters, struct arena *arena,
                          struct diag *diag) MUST_CHECK;

/**
 * Deletes the rows and records skips, for their keys or for every key of the
 * messages; then what the messages left for other keys is deleted as well.
 * *deleted counts rows.
 */
enum status letters_skip(struct db *db, const struct catalog *catalog,
                         const struct letters *letters, bool every_key,
                         struct arena *arena, int64_t *deleted,
                         struct diag *diag) MUST_CHECK;

#endif
