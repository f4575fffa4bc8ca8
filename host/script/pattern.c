#include "script/pattern.h"

#include "script/limits.h"
#include "script/pattern_match.h"

#include <lauxlib.h>
#include <string.h>

/* Pushes capture `index`; the whole match s..e when there are none. */
static void push_capture(struct pattern_match *m, int index, const char *s,
                         const char *e)
{
    ptrdiff_t len;

    if (index >= m->count) {
        if (index != 0)
            luaL_error(m->L, "invalid capture index");
        lua_pushlstring(m->L, s, (size_t)(e - s));
        return;
    }
    len = m->captures[index].len;
    if (len == PATTERN_OPEN)
        luaL_error(m->L, "unfinished capture");
    if (len == PATTERN_POSITION)
        lua_pushinteger(m->L, m->captures[index].start - m->subject + 1);
    else
        lua_pushlstring(m->L, m->captures[index].start, (size_t)len);
}

/* Pushes all captures; `whole`: the match itself when there are none. */
static int push_captures(struct pattern_match *m, const char *s, const char *e,
                         bool whole)
{
    int count = m->count == 0 && whole ? 1 : m->count;

    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(m, i, s, e);
    return count;
}

static struct text check_text(lua_State *L, int arg)
{
    struct text t;

    t.data = luaL_checklstring(L, arg, &t.len);
    return t;
}

/* Where a search starts: the third argument, as an offset. */
static size_t check_init(lua_State *L, size_t len)
{
    lua_Number init = luaL_optnumber(L, 3, 1);

    if (init < 0)
        init += (lua_Number)len + 1;
    if (!(init > 1))
        return 0;
    return init - 1 > (lua_Number)len ? len : (size_t)(init - 1);
}

static bool has_specials(struct text pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.data[i] != '\0' &&
            strchr("^$*+?.([%-", pattern.data[i]) != NULL)
            return true;
    }
    return false;
}

static int find_plain(lua_State *L, struct text subject, struct text pattern,
                      size_t init)
{
    const char *at = memmem(subject.data + init, subject.len - init,
                            pattern.data, pattern.len);

    if (at == NULL) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, at - subject.data + 1);
    lua_pushinteger(L, at - subject.data + (ptrdiff_t)pattern.len);
    return 2;
}

static int search(lua_State *L, bool find)
{
    struct text subject = check_text(L, 1);
    struct text pattern = check_text(L, 2);
    size_t init = check_init(L, subject.len);
    const char *s = subject.data + init;
    const char *p = pattern.data;
    bool anchored = pattern.len > 0 && *p == '^';
    struct pattern_match m;

    if (find && (lua_toboolean(L, 4) || !has_specials(pattern)))
        return find_plain(L, subject, pattern, init);
    pattern_match_init(&m, L, subject, pattern);
    if (anchored)
        p++;
    do {
        const char *e = pattern_match_at(&m, s, p);

        if (e != NULL && !find)
            return push_captures(&m, s, e, true);
        if (e != NULL) {
            lua_pushinteger(L, s - subject.data + 1);
            lua_pushinteger(L, e - subject.data);
            return 2 + push_captures(&m, s, e, false);
        }
    } while (s++ < m.end && !anchored);
    lua_pushnil(L);
    return 1;
}

int pattern_find(lua_State *L)
{
    return search(L, true);
}

int pattern_match(lua_State *L)
{
    return search(L, false);
}

/* Upvalues: subject, pattern, offset to go on from. */
static int gmatch_next(lua_State *L)
{
    struct text subject;
    struct text pattern;
    struct pattern_match m;

    subject.data = lua_tolstring(L, lua_upvalueindex(1), &subject.len);
    pattern.data = lua_tolstring(L, lua_upvalueindex(2), &pattern.len);
    pattern_match_init(&m, L, subject, pattern);
    for (const char *s =
             subject.data + (size_t)lua_tonumber(L, lua_upvalueindex(3));
         s <= m.end; s++) {
        const char *e = pattern_match_at(&m, s, pattern.data);

        if (e == NULL)
            continue;
        lua_pushnumber(L, (lua_Number)(e - subject.data + (e == s ? 1 : 0)));
        lua_replace(L, lua_upvalueindex(3));
        return push_captures(&m, s, e, true);
    }
    return 0;
}

int pattern_gmatch(lua_State *L)
{
    (void)check_text(L, 1);
    (void)check_text(L, 2);
    lua_settop(L, 2);
    lua_pushnumber(L, 0);
    lua_pushcclosure(L, gmatch_next, 3);
    return 1;
}

/* The replacement text at argument 3 with %0 to %9 filled in. */
static void add_text(struct pattern_match *m, luaL_Buffer *out, const char *s,
                     const char *e)
{
    struct text by;

    by.data = lua_tolstring(m->L, 3, &by.len);
    for (size_t i = 0; i < by.len; i++) {
        char c = by.data[i];

        if (c == '%') {
            if (++i == by.len)
                luaL_error(m->L, "invalid use of '%%' in the replacement");
            c = by.data[i];
            if (c == '0') {
                luaL_addlstring(out, s, (size_t)(e - s));
                continue;
            }
            if (pattern_match_is_digit(c)) {
                push_capture(m, c - '1', s, e);
                luaL_addvalue(out);
                continue;
            }
        }
        luaL_addchar(out, c);
    }
}

static void add_replacement(struct pattern_match *m, luaL_Buffer *out,
                            const char *s, const char *e)
{
    lua_State *L = m->L;

    limits_check_stack(L);
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION:
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, s, e, true), 1);
        break;
    case LUA_TTABLE:
        push_capture(m, 0, s, e);
        lua_gettable(L, 3);
        break;
    default:
        add_text(m, out, s, e);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, s, (size_t)(e - s));
    } else if (lua_isstring(L, -1) == 0) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(out);
}

int pattern_gsub(lua_State *L)
{
    struct text subject = check_text(L, 1);
    struct text pattern = check_text(L, 2);
    int type = lua_type(L, 3);
    lua_Number most = luaL_optnumber(L, 4, (lua_Number)subject.len + 1);
    const char *s = subject.data;
    const char *p = pattern.data;
    bool anchored = pattern.len > 0 && *p == '^';
    lua_Number count = 0;
    luaL_Buffer out;
    struct pattern_match m;

    luaL_argcheck(L,
                  type == LUA_TNUMBER || type == LUA_TSTRING ||
                      type == LUA_TFUNCTION || type == LUA_TTABLE,
                  3, "string/function/table expected");
    if (type == LUA_TNUMBER)
        (void)lua_tostring(L, 3);
    pattern_match_init(&m, L, subject, pattern);
    if (anchored)
        p++;
    luaL_buffinit(L, &out);
    while (count < most) {
        const char *e = pattern_match_at(&m, s, p);

        if (e != NULL) {
            count++;
            add_replacement(&m, &out, s, e);
        }
        if (e != NULL && e > s)
            s = e;
        else if (s < m.end)
            luaL_addchar(&out, *s++);
        else
            break;
        if (anchored)
            break;
    }
    luaL_addlstring(&out, s, (size_t)(m.end - s));
    luaL_pushresult(&out);
    lua_pushnumber(L, count);
    return 2;
}
