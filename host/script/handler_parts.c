#include "script/handler_parts.h"

#include "script/event.h"
#include "script/handler_keys.h"
#include "script/json_codec.h"
#include "script/upcast.h"

/* Pushes the parts of the job's message. */
static void push_parts(lua_State *L, struct handler_job *job)
{
    const struct message *message = job->call->message;
    struct diag diag;

    if (json_codec_decode(L, message->payload, "payload", &diag) != STATUS_OK) {
        job->code->decode_failed = true;
        luaL_error(L, "%s; an event that is split must be readable",
                   diag.message);
    }
    upcast_parts(job->code, L, job->splits, message->revision);
}

/* The type of the part at the top; its string lives with the part. */
static struct text part_type(lua_State *L)
{
    struct text type;

    lua_getfield(L, -1, "type");
    type.data = lua_tolstring(L, -1, &type.len);
    lua_pop(L, 1);
    return type;
}

static bool is_wanted(const struct handler_job *job)
{
    const struct declaration *d = job->call->declaration;

    return map_get(&job->code->types[d->index], job->type) != MAP_ABSENT;
}

void handler_parts_each(lua_State *L, struct handler_job *job, bool by_key,
                        handler_part_fn fn)
{
    int top = lua_gettop(L);

    if (job->splits == NULL) {
        if (job->declared && !job->needs_all && !is_wanted(job))
            return; /* it was read for what older ones are split into */
        fn(L, job);
        return;
    }
    luaL_checkstack(L, 8, NULL);
    push_parts(L, job);
    for (int i = 1; !job->failed && i <= (int)lua_objlen(L, top + 1); i++) {
        lua_rawgeti(L, top + 1, i);
        job->part = i;
        job->part_at = top + 2;
        job->type = part_type(L);
        if ((job->needs_all || is_wanted(job)) &&
            (!by_key || handler_keys_match(L, job)))
            fn(L, job);
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
}

void handler_parts_push_event(lua_State *L, struct handler_job *job)
{
    static const char *const fields[] = {"type", "revision", "payload"};

    event_push(job->code, L);
    if (job->part == 0)
        return;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        lua_pushstring(L, fields[i]);
        lua_pushvalue(L, -1);
        lua_rawget(L, job->part_at);
        lua_rawset(L, -3);
    }
    lua_pushliteral(L, "part");
    lua_pushinteger(L, job->part);
    lua_rawset(L, -3);
}
