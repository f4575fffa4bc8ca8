/* Declarations that the tests of the step machine play with. */
#ifndef SPEC_UNIT_SAGA_STEPS_SUPPORT_H
#define SPEC_UNIT_SAGA_STEPS_SUPPORT_H

#include "model/saga_steps.h"

#define SECOND INT64_C(1000000)

static const struct text YES[] = {
    {"a.yes", 5}, {"b.yes", 5}, {"c.yes", 5}, {"d.yes", 5}, {"e.yes", 5}};
static const struct text NO[] = {
    {"a.no", 4}, {"b.no", 4}, {"c.no", 4}, {"d.no", 4}, {"e.no", 4}};
static const struct text UNDONE[] = {{"a.undone", 8},
                                     {"b.undone", 8},
                                     {"c.undone", 8},
                                     {"d.undone", 8},
                                     {"e.undone", 8}};

enum rule_kind {
    PLAIN = 0,
    PIVOT = 1,
    RETRIABLE = 2,
    STAGED = 4,  /* awaits no answer */
    UNNEEDED = 8 /* compensate = false */
};

#define RULES_MAX 5

struct saga {
    struct saga_step_rule rules[RULES_MAX];
    size_t count;
};

static inline struct saga saga_of(const unsigned *kinds, size_t count)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct saga saga = {.count = count};

    for (size_t i = 0; i < count; i++) {
        struct saga_step_rule *rule = &saga.rules[i];

        *rule = (struct saga_step_rule){
            .name = text_of(names[i]),
            .pivot = (kinds[i] & PIVOT) != 0,
            .retriable = (kinds[i] & RETRIABLE) != 0,
            .forward = {.to = TEXT_LITERAL("there"),
                        .command = text_of(names[i]),
                        .succeeds = &YES[i],
                        .nsucceeds = (kinds[i] & STAGED) == 0,
                        .timeout_us = 60 * SECOND},
            .fails = &NO[i],
            .nfails = (kinds[i] & STAGED) == 0,
        };
        rule->compensated = !rule->pivot && !rule->retriable &&
                            (kinds[i] & UNNEEDED) == 0;
        if (rule->compensated)
            rule->back = (struct saga_step_message){
                .to = TEXT_LITERAL("there"),
                .command = text_of(names[i]),
                .succeeds = &UNDONE[i],
                .nsucceeds = 1,
                .timeout_us = 30 * SECOND,
            };
    }
    return saga;
}

static const struct retry_policy RESENDS = {
    .attempts = 2,
    .delay_us = 40 * SECOND,
    .factor = 2,
    .max_delay_us = 100 * SECOND,
};

static const struct uuid INSTANCE = {{0x01, 0x8B, 0xCF, 0xE5, 0x68, 0x04, 0x7D,
                                      0x58, 0x9E, 0xBE, 0xA5, 0x59, 0x5A, 0x27,
                                      0x82, 0xF2}};

static inline struct saga_steps steps_of(const struct saga *saga,
                                         struct arena *arena)
{
    return (struct saga_steps){
        .rules = saga->rules,
        .nrules = saga->count,
        .retry = RESENDS,
        .instance = INSTANCE,
        .arena = arena,
        .now = 1000 * SECOND,
    };
}

#endif
