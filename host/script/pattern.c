#include "script/pattern.h"

#include "base/text.h"
#include "script/limits.h"

#include <lauxlib.h>
#include <string.h>

#define CAPTURES_MAX  32
#define DEPTH_MAX     200  /* nested matches: bounds the C stack */
#define STEPS_A_CHECK 4096 /* steps between two looks at the clock */

#define CAPTURE_OPEN     (-1)
#define CAPTURE_POSITION (-2)

struct match {
    lua_State *L;
    const char *subject;
    const char *end; /* of the subject */
    const char *pattern_end;
    unsigned steps;
    int depth;
    int count; /* captures, open ones included */
    struct {
        const char *start;
        ptrdiff_t len; /* or CAPTURE_OPEN, CAPTURE_POSITION */
    } captures[CAPTURES_MAX];
};

static const char *match_here(struct match *m, const char *s, const char *p);

static void step(struct match *m)
{
    if (++m->steps % STEPS_A_CHECK == 0)
        limits_check(m->L);
}

static bool is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_graph(int c)
{
    return c > 32 && c < 127;
}

static int to_lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Is `c` of the class %class? The bytes are those of ASCII in any locale. */
static bool in_class(int c, int class)
{
    bool is;

    switch (to_lower(class)) {
    case 'a':
        is = is_alpha(c);
        break;
    case 'c':
        is = c < 32 || c == 127;
        break;
    case 'd':
        is = is_digit(c);
        break;
    case 'g':
        is = is_graph(c);
        break;
    case 'l':
        is = c >= 'a' && c <= 'z';
        break;
    case 'p':
        is = is_graph(c) && !is_alpha(c) && !is_digit(c);
        break;
    case 's':
        is = c == ' ' || (c >= '\t' && c <= '\r');
        break;
    case 'u':
        is = c >= 'A' && c <= 'Z';
        break;
    case 'w':
        is = is_alpha(c) || is_digit(c);
        break;
    case 'x':
        is = is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
        break;
    case 'z':
        is = c == 0;
        break;
    default:
        return class == c;
    }
    return class == to_lower(class) ? is : !is;
}

/* The end of the single-character item that starts at `p`. */
static const char *item_end(struct match *m, const char *p)
{
    char first = *p++;

    if (first == '%') {
        if (p == m->pattern_end)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (first != '[')
        return p;
    if (p < m->pattern_end && *p == '^')
        p++;
    /* a ']' that comes first stands for itself */
    do {
        if (p == m->pattern_end)
            luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p++ == '%' && p < m->pattern_end)
            p++;
    } while (p == m->pattern_end || *p != ']');
    return p + 1;
}

/* Is `c` in the set from '[' at `p` to ']' at `last`? */
static bool in_set(int c, const char *p, const char *last)
{
    bool found = true;

    p++;
    if (*p == '^') {
        found = false;
        p++;
    }
    while (p < last) {
        if (*p == '%') {
            p++;
            if (in_class(c, (unsigned char)*p))
                return found;
            p++;
        } else if (p + 2 < last && p[1] == '-') {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
                return found;
            p += 3;
        } else {
            if ((unsigned char)*p == c)
                return found;
            p++;
        }
    }
    return !found;
}

/* Does the item p..end match the byte at `s`? */
static bool item_matches(struct match *m, const char *s, const char *p,
                         const char *end)
{
    int c;

    step(m);
    if (s >= m->end)
        return false;
    c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* %bxy, with x and y at `p`. */
static const char *match_balance(struct match *m, const char *s, const char *p)
{
    int depth = 1;

    if (m->pattern_end - p < 2)
        luaL_error(m->L, "unbalanced pattern");
    if (s >= m->end || *s != p[0])
        return NULL;
    while (++s < m->end) {
        step(m);
        if (*s == p[1]) {
            if (--depth == 0)
                return s + 1;
        } else if (*s == p[0]) {
            depth++;
        }
    }
    return NULL;
}

/* item* and item+: as many as there are, then fewer. */
static const char *match_most(struct match *m, const char *s, const char *p,
                              const char *end)
{
    ptrdiff_t count = 0;

    while (item_matches(m, s + count, p, end))
        count++;
    for (; count >= 0; count--) {
        const char *rest = match_here(m, s + count, end + 1);

        if (rest != NULL)
            return rest;
    }
    return NULL;
}

/* item-: as few as possible. */
static const char *match_least(struct match *m, const char *s, const char *p,
                               const char *end)
{
    for (;;) {
        const char *rest = match_here(m, s, end + 1);

        if (rest != NULL)
            return rest;
        if (!item_matches(m, s, p, end))
            return NULL;
        s++;
    }
}

static const char *open_capture(struct match *m, const char *s, const char *p,
                                ptrdiff_t kind)
{
    const char *rest;

    if (m->count >= CAPTURES_MAX)
        luaL_error(m->L, "too many captures");
    m->captures[m->count].start = s;
    m->captures[m->count].len = kind;
    m->count++;
    rest = match_here(m, s, p);
    if (rest == NULL)
        m->count--;
    return rest;
}

static const char *close_capture(struct match *m, const char *s, const char *p)
{
    int last = m->count - 1;
    const char *rest;

    while (last >= 0 && m->captures[last].len != CAPTURE_OPEN)
        last--;
    if (last < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->captures[last].len = s - m->captures[last].start;
    rest = match_here(m, s, p);
    if (rest == NULL)
        m->captures[last].len = CAPTURE_OPEN;
    return rest;
}

/* %1 to %9: what the capture held, once more. */
static const char *match_capture(struct match *m, const char *s, char digit)
{
    int index = digit - '1';
    size_t len;

    if (index < 0 || index >= m->count ||
        m->captures[index].len == CAPTURE_OPEN)
        luaL_error(m->L, "invalid capture index");
    /* a position capture never matches: its length is out of reach */
    len = (size_t)m->captures[index].len;
    if ((size_t)(m->end - s) < len ||
        memcmp(m->captures[index].start, s, len) != 0)
        return NULL;
    return s + len;
}

static bool at_frontier(struct match *m, const char *s, const char *p,
                        const char *end)
{
    int before = s == m->subject ? 0 : (unsigned char)s[-1];
    int here = s == m->end ? 0 : (unsigned char)*s;

    return !in_set(before, p, end - 1) && in_set(here, p, end - 1);
}

/* An item with its quantifier. Sets *s and *p to go on, or returns the final
 * verdict by *done. */
static const char *match_item(struct match *m, const char **s, const char **p,
                              bool *done)
{
    const char *end = item_end(m, *p);
    char quantifier = end < m->pattern_end ? *end : '\0';
    const char *rest;

    *done = true;
    switch (quantifier) {
    case '?':
        if (item_matches(m, *s, *p, end)) {
            rest = match_here(m, *s + 1, end + 1);
            if (rest != NULL)
                return rest;
        }
        *p = end + 1;
        break;
    case '*':
        return match_most(m, *s, *p, end);
    case '+':
        return item_matches(m, *s, *p, end) ? match_most(m, *s + 1, *p, end)
                                            : NULL;
    case '-':
        return match_least(m, *s, *p, end);
    default:
        if (!item_matches(m, *s, *p, end))
            return NULL;
        (*s)++;
        *p = end;
        break;
    }
    *done = false;
    return NULL;
}

/* The end of the match of the pattern from `p` at `s`, or NULL. */
static const char *match_pattern(struct match *m, const char *s, const char *p)
{
    while (p < m->pattern_end) {
        bool done = false;
        const char *result;

        step(m);
        if (*p == '(') {
            if (p + 1 < m->pattern_end && p[1] == ')')
                return open_capture(m, s, p + 2, CAPTURE_POSITION);
            return open_capture(m, s, p + 1, CAPTURE_OPEN);
        }
        if (*p == ')')
            return close_capture(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end)
            return s == m->end ? s : NULL;
        if (*p == '%' && p + 1 < m->pattern_end && p[1] == 'b') {
            s = match_balance(m, s, p + 2);
            if (s == NULL)
                return NULL;
            p += 4;
            continue;
        }
        if (*p == '%' && p + 1 < m->pattern_end && p[1] == 'f') {
            const char *end;

            p += 2;
            if (p == m->pattern_end || *p != '[')
                luaL_error(m->L, "missing '[' after '%%f' in pattern");
            end = item_end(m, p);
            if (!at_frontier(m, s, p, end))
                return NULL;
            p = end;
            continue;
        }
        if (*p == '%' && p + 1 < m->pattern_end && is_digit(p[1])) {
            s = match_capture(m, s, p[1]);
            if (s == NULL)
                return NULL;
            p += 2;
            continue;
        }
        result = match_item(m, &s, &p, &done);
        if (done)
            return result;
    }
    return s;
}

static const char *match_here(struct match *m, const char *s, const char *p)
{
    const char *rest;

    if (++m->depth > DEPTH_MAX)
        luaL_error(m->L, "pattern too complex");
    rest = match_pattern(m, s, p);
    m->depth--;
    return rest;
}

static void match_init(struct match *m, lua_State *L, struct text subject,
                       struct text pattern)
{
    m->L = L;
    m->subject = subject.data;
    m->end = subject.data + subject.len;
    m->pattern_end = pattern.data + pattern.len;
    m->steps = 0;
    m->depth = 0;
    m->count = 0;
}

static const char *match_at(struct match *m, const char *s, const char *p)
{
    m->count = 0;
    m->depth = 0;
    return match_here(m, s, p);
}

/* Pushes capture `index`; the whole match s..e when there are none. */
static void push_capture(struct match *m, int index, const char *s,
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
    if (len == CAPTURE_OPEN)
        luaL_error(m->L, "unfinished capture");
    if (len == CAPTURE_POSITION)
        lua_pushinteger(m->L, m->captures[index].start - m->subject + 1);
    else
        lua_pushlstring(m->L, m->captures[index].start, (size_t)len);
}

/* Pushes all captures; `whole`: the match itself when there are none. */
static int push_captures(struct match *m, const char *s, const char *e,
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
    struct match m;

    if (find && (lua_toboolean(L, 4) || !has_specials(pattern)))
        return find_plain(L, subject, pattern, init);
    match_init(&m, L, subject, pattern);
    if (anchored)
        p++;
    do {
        const char *e = match_at(&m, s, p);

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
    struct match m;

    subject.data = lua_tolstring(L, lua_upvalueindex(1), &subject.len);
    pattern.data = lua_tolstring(L, lua_upvalueindex(2), &pattern.len);
    match_init(&m, L, subject, pattern);
    for (const char *s =
             subject.data + (size_t)lua_tonumber(L, lua_upvalueindex(3));
         s <= m.end; s++) {
        const char *e = match_at(&m, s, pattern.data);

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
static void add_text(struct match *m, luaL_Buffer *out, const char *s,
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
            if (is_digit(c)) {
                push_capture(m, c - '1', s, e);
                luaL_addvalue(out);
                continue;
            }
        }
        luaL_addchar(out, c);
    }
}

static void add_replacement(struct match *m, luaL_Buffer *out, const char *s,
                            const char *e)
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
    struct match m;

    luaL_argcheck(L,
                  type == LUA_TNUMBER || type == LUA_TSTRING ||
                      type == LUA_TFUNCTION || type == LUA_TTABLE,
                  3, "string/function/table expected");
    if (type == LUA_TNUMBER)
        (void)lua_tostring(L, 3);
    match_init(&m, L, subject, pattern);
    if (anchored)
        p++;
    luaL_buffinit(L, &out);
    while (count < most) {
        const char *e = match_at(&m, s, p);

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
