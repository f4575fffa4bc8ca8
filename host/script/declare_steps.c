#include "script/declare_steps.h"

#include "model/saga_steps.h"

#include <lauxlib.h>

/* The step, or the message of one, that lies at the top. */
static struct declare_build at_top(const struct declare_build *b)
{
    struct declare_build inner = *b;

    inner.at = lua_gettop(b->L);
    return inner;
}

/* Pops the message; gives its function. */
static int take_message(const struct declare_build *b,
                        struct saga_step_message *message)
{
    struct declare_build m = at_top(b);
    int function = declare_function(&m, "message");

    message->to = declare_text(&m, "to");
    message->command = declare_text(&m, "command");
    message->succeeds = declare_texts(&m, "succeeds", &message->nsucceeds);
    message->timeout_us = declare_integer(&m, m.at, "timeout");
    lua_pop(b->L, 1);
    return function;
}

static void take_step(const struct declare_build *b, int *messages,
                      struct saga_step_rule *rule)
{
    struct declare_build step = at_top(b);

    rule->name = declare_text(&step, "name");
    rule->pivot = declare_boolean(&step, step.at, "pivot");
    rule->retriable = declare_boolean(&step, step.at, "retriable");
    rule->fails = declare_texts(&step, "fails", &rule->nfails);
    lua_getfield(b->L, step.at, "forward");
    messages[0] = take_message(b, &rule->forward);
    messages[1] = LUA_NOREF;
    lua_getfield(b->L, step.at, "back");
    rule->compensated = lua_istable(b->L, -1);
    if (rule->compensated)
        messages[1] = take_message(b, &rule->back);
    else
        lua_pop(b->L, 1);
}

void declare_steps(const struct declare_build *b)
{
    struct declaration *d = b->declaration;
    struct saga_step_rule *rules;
    int list;

    luaL_checkstack(b->L, 12, NULL);
    lua_getfield(b->L, b->at, "steps");
    list = lua_gettop(b->L);
    d->nsteps = lua_objlen(b->L, list);
    rules = arena_alloc_zero(b->set->arena, d->nsteps * sizeof(*rules) + 1);
    b->code->messages = arena_alloc(
        b->set->arena, 2 * d->nsteps * sizeof(*b->code->messages) + 1);
    for (size_t i = 0; i < d->nsteps; i++) {
        lua_rawgeti(b->L, list, (int)i + 1);
        take_step(b, b->code->messages + 2 * i, &rules[i]);
        lua_pop(b->L, 1);
    }
    lua_pop(b->L, 1);
    d->steps = rules;
    b->code->on_end = declare_function(b, "on_end");
    d->tells_end = b->code->on_end != LUA_NOREF;
}
