#include "script/ctx_publish.h"

#include "model/publisher.h"
#include "script/ctx_internal.h"
#include "script/ctx_option.h"
#include "script/value.h"

static struct text check_text(lua_State *L, int index, const char *what)
{
    struct text text;

    if (lua_type(L, index) != LUA_TSTRING)
        luaL_error(L,
                   "ctx:publish takes publisher, type, payload and options: "
                   "the %s must be text, not a %s",
                   what, luaL_typename(L, index));
    text.data = lua_tolstring(L, index, &text.len);
    return text;
}

static void check_publisher(const struct handler_code *code, lua_State *L,
                            struct text name)
{
    const struct publishers *publishers = &code->set->publishers;
    const char *near;

    if (publishers_find(publishers, name) != NULL)
        return;
    if (publishers->count == 0)
        luaL_error(L,
                   "ctx:publish: no publisher is declared; add "
                   "moontide.publisher \"%s\" { to = \"...\" }",
                   value_name(L, 2));
    near = publishers_nearest(publishers, name.data);
    luaL_error(
        L, "ctx:publish: no publisher is called \"%s\"%s%s%s", value_name(L, 2),
        near != NULL ? "; did you mean \"" : "; moontide check lists them",
        near != NULL ? near : "", near != NULL ? "\"?" : "");
}

/* What the message says of where it comes from. */
static void trace(const struct handler_call *call, struct outgoing *outgoing,
                  struct arena *arena)
{
    struct outgoing_saga saga = {.type = call->declaration->name,
                                 .id = call->key};
    bool of_saga = call->declaration->kind == DECLARATION_SAGA;

    outgoing_trace(outgoing, call->message, of_saga ? &saga : NULL, arena);
}

/* A deadline has no event whose aggregate could order it: the saga does. */
static struct text ordering_key(const struct handler_code *code)
{
    if (code->saga != NULL && handler_saga_of_deadline(code->saga))
        return code->call->key;
    return code->call->message->aggregate_id;
}

int ctx_publish(lua_State *L)
{
    static const char *const names[] = {"id", "ordering_key", "tenant_id",
                                        "execution_id", NULL};
    struct handler_code *code = ctx_check(L, "publish");
    struct effects *effects = ctx_option_effects(code, L, "publish");
    struct outgoing message = {.route = TEXT_NONE};
    struct arena arena = ARENA_EMPTY;
    struct uuid tenant, execution;
    struct diag diag;
    enum status status;

    lua_settop(L, 5);
    luaL_checkstack(L, 24, NULL);
    message.route = check_text(L, 2, "publisher");
    message.type = check_text(L, 3, "type");
    check_publisher(code, L, message.route);
    ctx_option_check(L, 5, "publish", names);
    if (lua_isnil(L, 4)) {
        lua_newtable(L);
        lua_replace(L, 4);
    }
    message.own_id = ctx_option_uuid(L, 5, "publish", "id", &message.event_id);
    if (ctx_option_uuid(L, 5, "publish", "tenant_id", &tenant))
        message.tenant_id = &tenant;
    if (ctx_option_uuid(L, 5, "publish", "execution_id", &execution))
        message.execution_id = &execution;
    message.ordering_key = ctx_option_text(L, 5, "ordering_key");
    if (message.ordering_key.data == NULL)
        message.ordering_key = ordering_key(code);
    message.payload = ctx_option_json(code, L, 4, "publish", "payload");
    trace(code->call, &message, &arena); /* nothing raises until it is freed */
    status = effects_publish(effects, &message, &diag);
    arena_free(&arena);
    if (status != STATUS_OK)
        return luaL_error(L, "ctx:publish: %s", diag.message);
    return 0;
}
