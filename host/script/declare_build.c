#include "script/declare_build.h"

#include <lauxlib.h>

int declare_fail(const struct declare_build *b, const char *message)
{
    return luaL_error(b->L, "%s:%d: %s \"%s\": %s", b->declaration->file,
                      b->declaration->line,
                      declaration_kind_word(b->declaration->kind),
                      b->declaration->name, message);
}

struct text declare_pop_text(const struct declare_build *b)
{
    struct text text = TEXT_NONE;

    if (!lua_isnil(b->L, -1)) {
        text.data = lua_tolstring(b->L, -1, &text.len);
        text = arena_copy(b->set->arena, text);
    }
    lua_pop(b->L, 1);
    return text;
}

struct text declare_text(const struct declare_build *b, const char *key)
{
    lua_getfield(b->L, b->at, key);
    return declare_pop_text(b);
}

int64_t declare_integer(const struct declare_build *b, int at, const char *key)
{
    int64_t value;

    lua_getfield(b->L, at, key);
    value = (int64_t)lua_tonumber(b->L, -1);
    lua_pop(b->L, 1);
    return value;
}

bool declare_boolean(const struct declare_build *b, int at, const char *key)
{
    bool value;

    lua_getfield(b->L, at, key);
    value = lua_toboolean(b->L, -1) != 0;
    lua_pop(b->L, 1);
    return value;
}

int declare_function(const struct declare_build *b, const char *key)
{
    lua_getfield(b->L, b->at, key);
    if (lua_isnil(b->L, -1)) {
        lua_pop(b->L, 1);
        return LUA_NOREF;
    }
    return luaL_ref(b->L, LUA_REGISTRYINDEX);
}

const struct text *declare_texts(const struct declare_build *b, const char *key,
                                 size_t *count)
{
    struct text *texts;

    *count = 0;
    lua_getfield(b->L, b->at, key);
    if (lua_isnil(b->L, -1)) {
        lua_pop(b->L, 1);
        return NULL;
    }
    *count = lua_objlen(b->L, -1);
    texts = arena_alloc(b->set->arena, *count * sizeof(*texts) + 1);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(b->L, -1, (int)i + 1);
        texts[i] = declare_pop_text(b);
    }
    lua_pop(b->L, 1);
    return texts;
}

static enum field_type field_type_of(const char *word)
{
    static const struct {
        const char *word;
        enum field_type type;
    } types[] = {
        {"text", FIELD_TEXT},       {"integer", FIELD_INTEGER},
        {"double", FIELD_DOUBLE},   {"decimal", FIELD_DECIMAL},
        {"boolean", FIELD_BOOLEAN}, {"date", FIELD_DATE},
        {"time", FIELD_TIME},       {"timestamp", FIELD_TIMESTAMP},
        {"uuid", FIELD_UUID},       {"enum", FIELD_ENUM},
        {"bytes", FIELD_BYTES},     {"list", FIELD_LIST},
        {"set", FIELD_SET},         {"record", FIELD_RECORD},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].word, word) == 0)
            return types[i].type;
    return FIELD_TEXT; /* declare.lua let no other word pass */
}

static const char *const *take_words(const struct declare_build *b, int at)
{
    const char **words = NULL;

    lua_getfield(b->L, at, "values");
    if (lua_istable(b->L, -1)) {
        size_t count = lua_objlen(b->L, -1);

        words = arena_alloc_zero(b->set->arena, (count + 1) * sizeof(*words));
        for (size_t i = 0; i < count; i++) {
            lua_rawgeti(b->L, -1, (int)i + 1);
            words[i] = declare_pop_text(b).data;
        }
    }
    lua_pop(b->L, 1);
    return words;
}

static void take_field(const struct declare_build *b, int at,
                       struct declaration_field *field)
{
    lua_getfield(b->L, at, "name");
    field->name = declare_pop_text(b).data;
    lua_getfield(b->L, at, "type");
    field->type = field_type_of(lua_tostring(b->L, -1));
    lua_pop(b->L, 1);
    field->precision = (int)declare_integer(b, at, "precision");
    field->scale = (int)declare_integer(b, at, "scale");
    field->unique = declare_boolean(b, at, "unique");
    field->optional = declare_boolean(b, at, "optional");
    field->values = take_words(b, at);
    lua_getfield(b->L, at, "inner");
    field->inner = declare_fields(b, &field->ninner);
}

const struct declaration_field *declare_fields(const struct declare_build *b,
                                               size_t *count)
{
    struct declaration_field *fields = NULL;
    int list = lua_gettop(b->L);

    *count = 0;
    if (lua_istable(b->L, list)) {
        luaL_checkstack(b->L, 8, NULL);
        *count = lua_objlen(b->L, list);
        fields = arena_alloc_zero(b->set->arena, *count * sizeof(*fields) + 1);
    }
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(b->L, list, (int)i + 1);
        take_field(b, list + 1, &fields[i]);
        lua_pop(b->L, 1);
    }
    lua_pop(b->L, 1);
    return fields;
}
