#include "script/ctx_option.h"

#include "script/json_codec.h"
#include "script/value.h"

struct effects *ctx_option_effects(struct handler_code *code, lua_State *L,
                                   const char *method)
{
    if (code->call->effects == NULL)
        luaL_error(L,
                   "ctx:%s is not there in a projection: only listeners and "
                   "sagas may cause effects",
                   method);
    return code->call->effects;
}

struct text ctx_option_text(lua_State *L, int options, const char *name)
{
    struct text text = TEXT_NONE;

    lua_getfield(L, options, name);
    if (lua_type(L, -1) == LUA_TSTRING)
        text.data = lua_tolstring(L, -1, &text.len);
    else if (!lua_isnil(L, -1))
        luaL_error(L, "%s must be text, not a %s", name, luaL_typename(L, -1));
    return text;
}

bool ctx_option_uuid(lua_State *L, int options, const char *method,
                     const char *name, struct uuid *id)
{
    struct text text = ctx_option_text(L, options, name);

    if (text.data != NULL && !uuid_parse(text, id))
        luaL_error(L, "ctx:%s: %s is not a UUID: \"%s\"", method, name,
                   text.data);
    return text.data != NULL;
}

void ctx_option_check(lua_State *L, int index, const char *method,
                      const char *const *names)
{
    if (lua_isnil(L, index)) {
        lua_newtable(L);
        lua_replace(L, index);
    }
    if (!lua_istable(L, index))
        luaL_error(L, "ctx:%s takes a table of options last, not a %s", method,
                   luaL_typename(L, index));
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        struct text name = TEXT_LITERAL("?");
        const char *near;
        bool known = false;

        if (lua_type(L, -2) == LUA_TSTRING)
            name.data = lua_tolstring(L, -2, &name.len);
        for (size_t i = 0; names[i] != NULL; i++)
            known |= text_equal(text_of(names[i]), name);
        near = known ? NULL : text_nearest(name.data, names);
        if (!known)
            luaL_error(L, "ctx:%s: unknown option \"%s\"%s%s%s", method,
                       value_name(L, -2),
                       near != NULL ? "; did you mean \"" : "",
                       near != NULL ? near : "", near != NULL ? "\"?" : "");
        lua_pop(L, 1);
    }
}

struct text ctx_option_json(struct handler_code *code, lua_State *L, int index,
                            const char *method, const char *root)
{
    struct buffer *out = &code->scratch;
    struct diag diag;
    struct text text;

    buffer_clear(out);
    if (json_codec_encode(L, index, root, out, &diag) != STATUS_OK)
        luaL_error(L, "ctx:%s: %s", method, diag.message);
    lua_pushlstring(L, out->data, out->len);
    text.data = lua_tolstring(L, -1, &text.len);
    return text;
}
