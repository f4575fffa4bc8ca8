#include "script/aggregate_check.h"

#include "script/json_codec.h"
#include "script/upcast.h"

static const struct declaration *find_aggregate(const struct declare_set *set,
                                                struct text name)
{
    for (size_t i = set->count; i < set->total; i++)
        if (text_equal(text_of(set->items[i].name), name))
            return &set->items[i];
    return NULL;
}

static const char *check_type(lua_State *L, const struct handler_job *job,
                              const struct declaration *target,
                              struct text type)
{
    const char *name;

    if (map_get(&job->code->types[target->index], type) != MAP_ABSENT)
        return NULL;
    lua_pushlstring(L, type.data, type.len);
    name = lua_tostring(L, -1);
    return lua_pushfstring(L,
                           "gives an event of type \"%s\", but aggregate "
                           "\"%s\" has no apply for \"%s\" (%s:%d): every "
                           "type of its stream needs one",
                           name, target->name, name, target->file,
                           target->line);
}

/* An older event is what the steps of its type make of it. */
static const char *check_older(lua_State *L, const struct handler_job *job,
                               const struct declaration *target,
                               const struct event_type *type,
                               const struct append_event *event)
{
    int parts = lua_gettop(L) + 1;
    const char *wrong = NULL;
    struct diag diag;

    luaL_checkstack(L, 8, NULL);
    if (json_codec_decode(L, event->payload, "payload", &diag) != STATUS_OK)
        luaL_error(L, "%s", diag.message);
    upcast_parts(job->code, L, type, event->revision);
    for (int i = 1; wrong == NULL && i <= (int)lua_objlen(L, parts); i++) {
        struct text part;

        lua_settop(L, parts);
        lua_rawgeti(L, parts, i);
        lua_getfield(L, -1, "type");
        part.data = lua_tolstring(L, -1, &part.len);
        wrong = check_type(L, job, target, part);
    }
    return wrong;
}

const char *aggregate_check_event(lua_State *L, const struct handler_job *job,
                                  const struct append_event *event)
{
    const struct declare_set *set = job->code->set;
    const struct event_type *type = event_types_find(&set->event_types,
                                                     event->type);
    const struct declaration *target;
    struct diag diag;

    if (event_types_admit(&set->event_types, event->type, event->revision,
                          &diag) != STATUS_OK)
        return lua_pushfstring(L, "gives %s", diag.message);
    target = find_aggregate(set, event->aggregate_type.data != NULL
                                     ? event->aggregate_type
                                     : text_of(job->call->declaration->name));
    if (target == NULL)
        return NULL;
    if (type == NULL || event->revision == type->revision)
        return check_type(L, job, target, event->type);
    return check_older(L, job, target, type, event);
}
