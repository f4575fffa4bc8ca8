#include "script/pattern_match.h"

#include "script/limits.h"

#include <lauxlib.h>
#include <string.h>

#define DEPTH_MAX     200  /* nested matches: bounds the C stack */
#define STEPS_A_CHECK 4096 /* steps between two looks at the clock */

static const char *match_here(struct pattern_match *m, const char *s,
                              const char *p);

static void step(struct pattern_match *m)
{
    if (++m->steps % STEPS_A_CHECK == 0)
        limits_check(m->L);
}

static bool is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
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
        is = pattern_match_is_digit(c);
        break;
    case 'g':
        is = is_graph(c);
        break;
    case 'l':
        is = c >= 'a' && c <= 'z';
        break;
    case 'p':
        is = is_graph(c) && !is_alpha(c) && !pattern_match_is_digit(c);
        break;
    case 's':
        is = c == ' ' || (c >= '\t' && c <= '\r');
        break;
    case 'u':
        is = c >= 'A' && c <= 'Z';
        break;
    case 'w':
        is = is_alpha(c) || pattern_match_is_digit(c);
        break;
    case 'x':
        is = pattern_match_is_digit(c) ||
             (to_lower(c) >= 'a' && to_lower(c) <= 'f');
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
static const char *item_end(struct pattern_match *m, const char *p)
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
static bool item_matches(struct pattern_match *m, const char *s, const char *p,
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
static const char *match_balance(struct pattern_match *m, const char *s,
                                 const char *p)
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
static const char *match_most(struct pattern_match *m, const char *s,
                              const char *p, const char *end)
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
static const char *match_least(struct pattern_match *m, const char *s,
                               const char *p, const char *end)
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

static const char *open_capture(struct pattern_match *m, const char *s,
                                const char *p, ptrdiff_t kind)
{
    const char *rest;

    if (m->count >= PATTERN_CAPTURES_MAX)
        luaL_error(m->L, "too many captures");
    m->captures[m->count].start = s;
    m->captures[m->count].len = kind;
    m->count++;
    rest = match_here(m, s, p);
    if (rest == NULL)
        m->count--;
    return rest;
}

static const char *close_capture(struct pattern_match *m, const char *s,
                                 const char *p)
{
    int last = m->count - 1;
    const char *rest;

    while (last >= 0 && m->captures[last].len != PATTERN_OPEN)
        last--;
    if (last < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->captures[last].len = s - m->captures[last].start;
    rest = match_here(m, s, p);
    if (rest == NULL)
        m->captures[last].len = PATTERN_OPEN;
    return rest;
}

/* %1 to %9: what the capture held, once more. */
static const char *match_capture(struct pattern_match *m, const char *s,
                                 char digit)
{
    int index = digit - '1';
    size_t len;

    if (index < 0 || index >= m->count ||
        m->captures[index].len == PATTERN_OPEN)
        luaL_error(m->L, "invalid capture index");
    /* a position capture never matches: its length is out of reach */
    len = (size_t)m->captures[index].len;
    if ((size_t)(m->end - s) < len ||
        memcmp(m->captures[index].start, s, len) != 0)
        return NULL;
    return s + len;
}

static bool at_frontier(struct pattern_match *m, const char *s, const char *p,
                        const char *end)
{
    int before = s == m->subject ? 0 : (unsigned char)s[-1];
    int here = s == m->end ? 0 : (unsigned char)*s;

    return !in_set(before, p, end - 1) && in_set(here, p, end - 1);
}

/* An item with its quantifier. Sets *s and *p to go on, or returns the final
 * verdict by *done. */
static const char *match_item(struct pattern_match *m, const char **s,
                              const char **p, bool *done)
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
static const char *match_pattern(struct pattern_match *m, const char *s,
                                 const char *p)
{
    while (p < m->pattern_end) {
        bool done = false;
        const char *result;

        step(m);
        if (*p == '(') {
            if (p + 1 < m->pattern_end && p[1] == ')')
                return open_capture(m, s, p + 2, PATTERN_POSITION);
            return open_capture(m, s, p + 1, PATTERN_OPEN);
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
        if (*p == '%' && p + 1 < m->pattern_end &&
            pattern_match_is_digit(p[1])) {
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

static const char *match_here(struct pattern_match *m, const char *s,
                              const char *p)
{
    const char *rest;

    if (++m->depth > DEPTH_MAX)
        luaL_error(m->L, "pattern too complex");
    rest = match_pattern(m, s, p);
    m->depth--;
    return rest;
}

void pattern_match_init(struct pattern_match *m, lua_State *L,
                        struct text subject, struct text pattern)
{
    m->L = L;
    m->subject = subject.data;
    m->end = subject.data + subject.len;
    m->pattern_end = pattern.data + pattern.len;
    m->steps = 0;
    m->depth = 0;
    m->count = 0;
}

const char *pattern_match_at(struct pattern_match *m, const char *s,
                             const char *p)
{
    m->count = 0;
    m->depth = 0;
    return match_here(m, s, p);
}
