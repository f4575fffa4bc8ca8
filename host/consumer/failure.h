/*
 * Failure -- why one message could not be applied: kept in the undelivered
 * row (failure_reason, at most 1,000 characters), shown by `status`.
 */
#ifndef HOST_CONSUMER_FAILURE_H
#define HOST_CONSUMER_FAILURE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

#define FAILURE_REASON_CHARS 1000
#define FAILURE_REASON_SIZE  (4 * FAILURE_REASON_CHARS + 1)

#define FAILURE_CAUSE_SIZE 256

/** Plain data. The reason is valid UTF-8 without NUL, cut between characters:
 * "class: message", with script and line inside. */
struct failure {
    bool permanent;   /* moontide.permanent: the budget is spent at once */
    bool waits;       /* nothing was tried: it is looked at again, for ever */
    bool dead_letter; /* permanent, and it lies dead whatever the policy says */
    char reason[FAILURE_REASON_SIZE];
};

/** Fills `failure`. `class` is one word of: error, timeout, memory, sql,
 * unique, state, key, decode, revision, limit, crash, unknown. */
void failure_set(struct failure *failure, bool permanent, const char *class,
                 const char *format, ...) PRINTF_LIKE(4, 5);

/** Adds to the reason, which is shortened where both do not fit. */
void failure_add(struct failure *failure, const char *format, ...)
    PRINTF_LIKE(2, 3);

/** What failures of one cause have in common: class and place in the script, or
 * the words before the first colon where there is none. For log_about.alike. */
void failure_cause(const struct failure *failure, char out[FAILURE_CAUSE_SIZE]);

/** Whether a recorded reason says that an attempt has ended its process. */
bool failure_is_crash(struct text reason);

/** The reason of an attempt that was counted before it was made, and of which
 * nothing was heard since. */
#define FAILURE_UNTOLD                                                         \
    "crash: the host that made this attempt ended without a word"

/** The reason of the first message of a page that was counted as a whole before
 * it was applied, and of which nothing was heard since. */
#define FAILURE_UNTOLD_PAGE                                                    \
    "crash: the host that had this message, or some behind it, in hand ended " \
    "without a word"

/** The failure that was recorded with this reason. */
void failure_recorded(struct failure *failure, struct text reason);

#endif
