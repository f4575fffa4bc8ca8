#include "script/handler_keys.h"

#include "script/handler_parts.h"
#include "script/int64.h"

#include <stdio.h>

#define KEYS_FEW 8 /* of one message, compared with each other */

/* Makes the value at `index` a string that can be a key, or says why not. */
static const char *make_key(lua_State *L, int index)
{
    char digits[32];
    struct text key;
    int64_t integer;

    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
    case INT64_CDATA:
        if (int64_read(L, index, &integer) != INT64_VALUE)
            return "a number that is no exact integer";
        snprintf(digits, sizeof(digits), "%lld", (long long)integer);
        lua_pushstring(L, digits);
        lua_replace(L, index);
        return NULL;
    case LUA_TSTRING:
        break;
    default:
        return luaL_typename(L, index);
    }
    key.data = lua_tolstring(L, index, &key.len);
    if (key.len == 0)
        return "an empty string";
    if (memchr(key.data, '\0', key.len) != NULL)
        return "a string with a NUL";
    if (!text_utf8_valid(key))
        return "a string that is not valid UTF-8";
    if (text_utf8_length(key) > MESSAGE_KEY_MAX)
        return "a string of more than 255 characters";
    return NULL;
}

static bool is_repeated(lua_State *L, int first, int index)
{
    for (int i = first; i < index; i++)
        if (lua_rawequal(L, i, index))
            return true;
    return false;
}

/* Makes nil of each key from index `first` on that was there before: a table
 * knows those beyond the first few. */
static void drop_repeated(lua_State *L, int first)
{
    int top = lua_gettop(L);
    bool many = top - first > KEYS_FEW;

    luaL_checkstack(L, 4, "too many keys");
    if (many)
        lua_createtable(L, 0, top - first + 1);
    for (int i = first; i <= top; i++) {
        bool repeated;

        if (lua_isnil(L, i))
            continue;
        if (many) {
            lua_pushvalue(L, i);
            lua_rawget(L, top + 1);
            repeated = lua_toboolean(L, -1) != 0;
            lua_pop(L, 1);
        } else {
            repeated = is_repeated(L, first, i);
        }
        if (repeated) {
            lua_pushnil(L);
            lua_replace(L, i);
        } else if (many) {
            lua_pushvalue(L, i);
            lua_pushboolean(L, 1);
            lua_rawset(L, top + 1);
        }
    }
    lua_settop(L, top);
}

/* Pushes the keys that the key function gives for what the message is. */
static void push_keys(lua_State *L, struct handler_job *job)
{
    int first = lua_gettop(L) + 1;
    char where[LIMITS_TEXT_SIZE];

    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_code(job)->key);
    handler_parts_push_event(L, job);
    lua_call(L, 1, LUA_MULTRET);
    for (int i = first; i <= lua_gettop(L); i++) {
        const char *wrong = lua_isnil(L, i) ? NULL : make_key(L, i);

        if (wrong == NULL)
            continue;
        lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_code(job)->key);
        handler_run_where(L, lua_gettop(L), where, sizeof(where));
        failure_set(job->failure, false, "key",
                    "%s: the key function returned %s%s; a key is text of 1 "
                    "to 255 characters or an integer",
                    where, strchr(wrong, ' ') != NULL ? "" : "a ", wrong);
        handler_run_fail(job);
        return;
    }
}

bool handler_keys_match(lua_State *L, struct handler_job *job)
{
    int top = lua_gettop(L);
    bool match = false;

    if (handler_run_code(job)->key == LUA_NOREF)
        return true;
    push_keys(L, job);
    for (int i = top + 1; !job->failed && !match && i <= lua_gettop(L); i++) {
        struct text key;

        if (lua_isnil(L, i))
            continue;
        key.data = lua_tolstring(L, i, &key.len);
        match = text_equal(key, job->call->key);
    }
    lua_settop(L, top);
    return match;
}

/* Collects the keys of a part in the table at index 2, which keeps them. */
static int collect_keys(lua_State *L, struct handler_job *job)
{
    int top = lua_gettop(L);

    push_keys(L, job);
    for (int i = top + 1; !job->failed && i <= lua_gettop(L); i++) {
        if (lua_isnil(L, i))
            continue;
        lua_pushvalue(L, i);
        lua_rawseti(L, 2, (int)lua_objlen(L, 2) + 1);
    }
    lua_settop(L, top);
    return 0;
}

/* Nothing raises once the first key is told. */
int handler_keys_enter(lua_State *L)
{
    struct handler_job *job = lua_touserdata(L, 1);
    const int first = 3;

    if (job->splits != NULL || job->declared) {
        lua_newtable(L);
        handler_parts_each(L, job, false, collect_keys);
        lua_settop(L, 2);
        luaL_checkstack(L, (int)lua_objlen(L, 2) + 4, "too many keys");
        for (int i = 1; i <= (int)lua_objlen(L, 2); i++)
            lua_rawgeti(L, 2, i);
    } else {
        lua_pushnil(L); /* index 2 */
        push_keys(L, job);
    }
    if (job->failed)
        return 0;
    drop_repeated(L, first);
    for (int i = first; i <= lua_gettop(L); i++) {
        struct text key;

        if (lua_isnil(L, i))
            continue;
        key.data = lua_tolstring(L, i, &key.len);
        job->emit(job->arg, key);
    }
    return 0;
}

enum status handler_keys_tell(void *self, const struct handler_call *call,
                              handler_key_fn emit, void *arg,
                              struct failure *failure)
{
    struct handler_job job = {
        .call = call,
        .failure = failure,
        .emit = emit,
        .arg = arg,
    };

    if (call->declaration->own_key)
        return handler_run(self, ENTRY_KEYS, &job, NULL);
    if (call->message->key.data != NULL)
        emit(arg, call->message->key);
    return STATUS_OK;
}
