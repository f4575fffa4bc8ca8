/*
 * Transition -- what each operator verb does to a consumer in each state: the
 * one table behind the verbs, the testing kit and the manual
 * (docs/operations.md, which a spec compares with it). It only answers;
 * consumer/operate.c changes rows.
 */
#ifndef HOST_CONSUMER_TRANSITION_H
#define HOST_CONSUMER_TRANSITION_H

#include "consumer/registry.h"

enum operator_verb {
    OPERATOR_PAUSE,
    OPERATOR_RESUME,
    OPERATOR_RESUME_ACCEPT,
    OPERATOR_RESUME_PAST,
    OPERATOR_UNSUBSCRIBE,       /* while a script declares it */
    OPERATOR_UNSUBSCRIBE_FORCE, /* by force, or when no script declares it */
    OPERATOR_REBUILD,
    OPERATOR_REBUILD_CANCEL, /* before its progress was reset */
    OPERATOR_VERBS,
};

enum transition_kind {
    TRANSITION_TO,      /* to `state` */
    TRANSITION_GONE,    /* its rows are removed */
    TRANSITION_NONE,    /* nothing changes; `text` says why */
    TRANSITION_REFUSED, /* `text` says why, and what to do */
};

struct transition {
    enum transition_kind kind;
    enum consumer_state state;
    const char *text; /* follows the consumer's name in a sentence */
};

/** The same for a consumer that is declared but has no row yet. */
const struct transition *transition_of_new(enum operator_verb verb);

/** Never NULL. `reason` counts only for a halted consumer. */
const struct transition *transition_find(enum operator_verb verb,
                                         enum consumer_state state,
                                         enum halt_reason reason);

#endif
