#include "consumer/transition.h"

#include <assert.h>

/* A state, and for a halted consumer why. */
enum situation {
    RUNS,
    PAUSED,
    MISSING_HISTORY,
    APPLY_ERROR,
    DECLARATION_CHANGED,
    REBUILDING,
    SITUATIONS,
};

#define TO(s)                                                                  \
    {                                                                          \
        TRANSITION_TO, (s), NULL                                               \
    }
#define GONE                                                                   \
    {                                                                          \
        TRANSITION_GONE, CONSUMER_RUNNING, NULL                                \
    }
#define NONE(text)                                                             \
    {                                                                          \
        TRANSITION_NONE, CONSUMER_RUNNING, (text)                              \
    }
#define REFUSED(text)                                                          \
    {                                                                          \
        TRANSITION_REFUSED, CONSUMER_RUNNING, (text)                           \
    }

static const char halted_stays[] =
    "is halted and stays so, with its reason: it applies nothing until it is "
    "resumed";
static const char goes_on[] =
    "is being rebuilt and goes on by itself once its progress is reset";
static const char is_declared[] =
    "is declared by the scripts, and the next start of a host would subscribe "
    "it again: pause it first, or give --force";

static const char no_rebuild[] = "is not about to be rebuilt";

static const struct transition table[OPERATOR_VERBS][SITUATIONS] = {
    [OPERATOR_PAUSE] =
        {
            [RUNS] = TO(CONSUMER_PAUSED),
            [PAUSED] = NONE("is paused already"),
            [MISSING_HISTORY] = NONE(halted_stays),
            [APPLY_ERROR] = NONE(halted_stays),
            [DECLARATION_CHANGED] = NONE(halted_stays),
            [REBUILDING] = REFUSED(
                "is being rebuilt, and its progress is about to be "
                "reset; the replay that follows can be paused"),
        },
    [OPERATOR_RESUME] =
        {
            [RUNS] = NONE("runs already"),
            [PAUSED] = TO(CONSUMER_RUNNING),
            [MISSING_HISTORY] = REFUSED(
                "is halted with MISSING_HISTORY: its topic no longer "
                "holds messages that it has not read; with --accept "
                "it goes on without them and stays marked as "
                "incomplete"),
            [APPLY_ERROR] = TO(CONSUMER_RUNNING),
            [DECLARATION_CHANGED] = REFUSED(
                "is halted with DECLARATION_CHANGED: its read models "
                "were derived by another declaration; rebuild it, or "
                "go on with what is there by --accept"),
            [REBUILDING] = NONE(goes_on),
        },
    [OPERATOR_RESUME_ACCEPT] =
        {
            [RUNS] = NONE("runs already"),
            [PAUSED] = TO(CONSUMER_RUNNING),
            [MISSING_HISTORY] = TO(CONSUMER_RUNNING),
            [APPLY_ERROR] = TO(CONSUMER_RUNNING),
            [DECLARATION_CHANGED] = TO(CONSUMER_RUNNING),
            [REBUILDING] = NONE(goes_on),
        },
    [OPERATOR_RESUME_PAST] =
        {
            [RUNS] = NONE("runs, and no message halts it"),
            [PAUSED] = REFUSED("is paused, not halted by a message: resume it "
                               "without --past"),
            [MISSING_HISTORY] = REFUSED(
                "is halted with MISSING_HISTORY, not by a message: "
                "there is none to pass"),
            [APPLY_ERROR] = TO(CONSUMER_RUNNING),
            [DECLARATION_CHANGED] = REFUSED(
                "is halted with DECLARATION_CHANGED, not by a "
                "message: there is none to pass"),
            [REBUILDING] = NONE(goes_on),
        },
    [OPERATOR_UNSUBSCRIBE] =
        {
            [RUNS] = REFUSED(is_declared),
            [PAUSED] = GONE,
            [MISSING_HISTORY] = REFUSED(is_declared),
            [APPLY_ERROR] = REFUSED(is_declared),
            [DECLARATION_CHANGED] = REFUSED(is_declared),
            [REBUILDING] = REFUSED(is_declared),
        },
    [OPERATOR_REBUILD] =
        {
            [RUNS] = TO(CONSUMER_REBUILDING),
            [PAUSED] = TO(CONSUMER_REBUILDING),
            [MISSING_HISTORY] = TO(CONSUMER_REBUILDING),
            [APPLY_ERROR] = TO(CONSUMER_REBUILDING),
            [DECLARATION_CHANGED] = TO(CONSUMER_REBUILDING),
            [REBUILDING] = NONE("is being rebuilt already"),
        },
    [OPERATOR_REBUILD_CANCEL] =
        {
            [RUNS] = NONE(no_rebuild),
            [PAUSED] = NONE(no_rebuild),
            [MISSING_HISTORY] = NONE(no_rebuild),
            [APPLY_ERROR] = NONE(no_rebuild),
            [DECLARATION_CHANGED] = NONE(no_rebuild),
            [REBUILDING] = TO(CONSUMER_RUNNING),
        },
    [OPERATOR_UNSUBSCRIBE_FORCE] =
        {
            [RUNS] = GONE,
            [PAUSED] = GONE,
            [MISSING_HISTORY] = GONE,
            [APPLY_ERROR] = GONE,
            [DECLARATION_CHANGED] = GONE,
            [REBUILDING] = GONE,
        },
};

static enum situation situation_of(enum consumer_state state,
                                   enum halt_reason reason)
{
    switch (state) {
    case CONSUMER_RUNNING:
        return RUNS;
    case CONSUMER_PAUSED:
        return PAUSED;
    case CONSUMER_REBUILDING:
        return REBUILDING;
    case CONSUMER_HALTED:
        break;
    }
    if (reason == HALT_MISSING_HISTORY)
        return MISSING_HISTORY;
    return reason == HALT_DECLARATION_CHANGED ? DECLARATION_CHANGED
                                              : APPLY_ERROR;
}

const struct transition *transition_find(enum operator_verb verb,
                                         enum consumer_state state,
                                         enum halt_reason reason)
{
    assert(verb < OPERATOR_VERBS);
    return &table[verb][situation_of(state, reason)];
}

const struct transition *transition_of_new(enum operator_verb verb)
{
    static const struct transition pause = REFUSED(
        "is declared, but no host has run it yet, or not since it was "
        "unsubscribed: there is nothing to pause");
    static const struct transition other = NONE(
        "is declared, but no host has run it yet, or not since it was "
        "unsubscribed");

    return verb == OPERATOR_PAUSE ? &pause : &other;
}
