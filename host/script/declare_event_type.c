#include "script/declare_event_type.h"

#include <lauxlib.h>

static int *take_steps(const struct declare_build *b)
{
    int *steps;
    size_t count;

    lua_getfield(b->L, b->at, "steps");
    count = lua_objlen(b->L, -1);
    steps = arena_alloc(b->set->arena, count * sizeof(*steps) + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(b->L, -1, (int)i + 1);
        steps[i] = luaL_ref(b->L, LUA_REGISTRYINDEX);
    }
    lua_pop(b->L, 1);
    return steps;
}

static void take_event_type(const struct declare_build *b,
                            struct event_type *type)
{
    type->name = declare_text(b, "name").data;
    type->file = declare_text(b, "file").data;
    type->returned_by = declare_text(b, "returned_by").data;
    type->line = (int)declare_integer(b, b->at, "line");
    type->revision = (int)declare_integer(b, b->at, "revision");
    type->oldest = (int)declare_integer(b, b->at, "oldest");
    type->into = declare_texts(b, "into", &type->ninto);
    lua_getfield(b->L, b->at, "fields");
    type->has_fields = lua_istable(b->L, -1);
    type->fields = declare_fields(b, &type->nfields);
}

void declare_event_types(struct declare_build *b, int list)
{
    struct declare_set *set = b->set;
    size_t count = lua_objlen(b->L, list);
    struct event_type *items;

    items = arena_alloc_zero(set->arena, count * sizeof(*items) + 1);
    set->steps = arena_alloc_zero(set->arena, count * sizeof(*set->steps) + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(b->L, list, (int)i + 1);
        b->at = lua_gettop(b->L);
        items[i].index = i;
        take_event_type(b, &items[i]);
        set->steps[i] = take_steps(b);
        lua_pop(b->L, 1);
    }
    set->event_types = (struct event_types){.items = items, .count = count};
}

static bool has_type(const struct declaration *d, struct text name)
{
    for (size_t i = 0; i < d->ntypes; i++)
        if (text_equal(d->types[i], name))
            return true;
    return false;
}

void declare_stored_types(const struct declare_build *b)
{
    const struct event_types *types = &b->set->event_types;
    struct declaration *d = b->declaration;
    struct text *stored = arena_alloc(
        b->set->arena, (d->ntypes + types->count) * sizeof(*stored) + 1);

    d->stored = stored;
    d->nstored = d->ntypes;
    for (size_t i = 0; i < d->ntypes; i++)
        stored[i] = d->types[i];
    for (size_t i = 0; i < types->count; i++) {
        struct text name = text_of(types->items[i].name);

        if (!has_type(d, name) &&
            event_types_lead(types, name, d->types, d->ntypes))
            stored[d->nstored++] = name;
    }
}
