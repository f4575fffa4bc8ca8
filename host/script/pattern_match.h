/*
 * Pattern match -- the matcher behind script/pattern.c: is there a match of
 * this pattern at this place, and what did its captures hold? Knows nothing of
 * arguments and results; raises for a malformed pattern and when time is over.
 */
#ifndef HOST_SCRIPT_PATTERN_MATCH_H
#define HOST_SCRIPT_PATTERN_MATCH_H

#include "base/text.h"

#include <lua.h>
#include <stddef.h>

#define PATTERN_CAPTURES_MAX 32

#define PATTERN_OPEN     (-1) /* a capture whose end is not reached */
#define PATTERN_POSITION (-2) /* a capture of a place: () */

struct pattern_match {
    lua_State *L;
    const char *subject;
    const char *end; /* of the subject */
    const char *pattern_end;
    unsigned steps;
    int depth;
    int count; /* captures, open ones included */
    struct {
        const char *start;
        ptrdiff_t len; /* or PATTERN_OPEN, PATTERN_POSITION */
    } captures[PATTERN_CAPTURES_MAX];
};

/** Both texts are borrowed: they stay on the stack of `L`. */
void pattern_match_init(struct pattern_match *m, lua_State *L,
                        struct text subject, struct text pattern);

/** The end of the match of the pattern from `p` at `s`; NULL if there is
 * none. Starts with no captures. */
const char *pattern_match_at(struct pattern_match *m, const char *s,
                             const char *p);

/** Decimal digit of ASCII, in any locale. */
static inline bool pattern_match_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

#endif
