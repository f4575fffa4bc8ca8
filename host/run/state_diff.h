/*
 * State diff -- where two states of a read model differ, member by member.
 */
#ifndef HOST_RUN_STATE_DIFF_H
#define HOST_RUN_STATE_DIFF_H

#include "base/text.h"

/** One difference: the path of a member ("lines.total", "" for the whole) and
 * what each state has there, as JSON; NULL data: it has no such member. Valid
 * during the call. */
typedef void (*state_diff_fn)(void *arg, struct text path, struct text stored,
                              struct text computed);

/** Whether the two are the same text, or neither is there. */
bool state_equal(struct text stored, struct text computed);

/** Calls `fn` for each difference, objects taken apart; lists and all else
 * differ as a whole. Both are checked JSON; NULL data: there is no read model.
 */
void state_diff(struct text stored, struct text computed, state_diff_fn fn,
                void *arg);

#endif
