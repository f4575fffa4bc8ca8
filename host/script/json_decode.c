#include "script/json_codec.h"

#include "base/json.h"
#include "script/int64.h"
#include "script/json_place.h"
#include "script/json_tags.h"

#include <lauxlib.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#define SCRATCH_SIZE 256 /* decoded strings up to here live on the C stack */
#define NUMBER_SIZE  64
#define FIRST_SIZE   4  /* slots of a nested object's table */
#define ROOT_SIZE    32 /* at most, of the outermost one */
#define MEMBER_BYTES 22 /* a usual member's length, for a first guess */

struct decoder {
    lua_State *L;
    const char *start;
    const char *at;
    const char *end;
    const char *root;
    struct diag *diag;
};

static enum status decode_value(struct decoder *d, const struct json_place *up);

/* 1: a byte that ends the plain part of a string. */
static const unsigned char CLASS[256] = {
    [0x00] = 1, [0x01] = 1, [0x02] = 1, [0x03] = 1, [0x04] = 1, [0x05] = 1,
    [0x06] = 1, [0x07] = 1, [0x08] = 1, [0x09] = 1, [0x0a] = 1, [0x0b] = 1,
    [0x0c] = 1, [0x0d] = 1, [0x0e] = 1, [0x0f] = 1, [0x10] = 1, [0x11] = 1,
    [0x12] = 1, [0x13] = 1, [0x14] = 1, [0x15] = 1, [0x16] = 1, [0x17] = 1,
    [0x18] = 1, [0x19] = 1, [0x1a] = 1, [0x1b] = 1, [0x1c] = 1, [0x1d] = 1,
    [0x1e] = 1, [0x1f] = 1, ['"'] = 1,  ['\\'] = 1,
};

static const double POWERS[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static enum status fail(struct decoder *d, const struct json_place *place,
                        const char *what)
{
    return json_place_fail(place, d->root, d->diag, "%s at byte %zu", what,
                           (size_t)(d->at - d->start));
}

static void skip_space(struct decoder *d)
{
    while (d->at < d->end && (*d->at == ' ' || *d->at == '\n' ||
                              *d->at == '\r' || *d->at == '\t'))
        d->at++;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Four hex digits at `at`, or -1. */
static long hex4(const char *at, const char *end)
{
    long code = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static char *write_utf8(char *out, long code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | (code >> 6));
        *out++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | (code >> 12));
        *out++ = (char)(0x80 | ((code >> 6) & 63));
        *out++ = (char)(0x80 | (code & 63));
    } else {
        *out++ = (char)(0xf0 | (code >> 18));
        *out++ = (char)(0x80 | ((code >> 12) & 63));
        *out++ = (char)(0x80 | ((code >> 6) & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    return out;
}

/* Decodes the escape whose backslash d->at stands on; moves past it. */
static enum status decode_escape(struct decoder *d, char **out,
                                 const struct json_place *place)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = d->at + 1;
    const char *known;
    long code, low;

    if (at == d->end)
        return fail(d, place, "the text ends inside a string");
    known = *at != '\0' ? strchr(from, *at) : NULL;
    if (known != NULL) {
        *(*out)++ = to[known - from];
        d->at = at + 1;
        return STATUS_OK;
    }
    if (*at != 'u' || (code = hex4(at + 1, d->end)) < 0)
        return fail(d, place, "bad escape in a string");
    at += 5;
    if (code >= 0xd800 && code <= 0xdfff) {
        low = code < 0xdc00 && d->end - at >= 6 && at[0] == '\\' && at[1] == 'u'
                  ? hex4(at + 2, d->end)
                  : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(d, place, "half of a surrogate pair in a string");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *out = write_utf8(*out, code);
    d->at = at;
    return STATUS_OK;
}

/* The end of the string that starts at `at`, without reading its content. */
static const char *string_end(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    return at;
}

/* A string with escapes is never longer decoded than written. Memory beyond
 * the C stack's belongs to the collector: pushing may raise. */
static enum status decode_long_string(struct decoder *d, const char *start,
                                      const struct json_place *place)
{
    char small[SCRATCH_SIZE], *out = small, *to;
    size_t size = (size_t)(string_end(d->at, d->end) - start);
    bool large = size > sizeof(small);
    enum status status;

    if (large)
        out = lua_newuserdata(d->L, size);
    to = out;
    d->at = start;
    while (d->at < d->end && *d->at != '"') {
        if (*d->at == '\\') {
            status = decode_escape(d, &to, place);
            if (status != STATUS_OK)
                return status;
        } else if ((unsigned char)*d->at < 0x20) {
            return fail(d, place, "raw control character in a string");
        } else {
            *to++ = *d->at++;
        }
    }
    if (d->at == d->end)
        return fail(d, place, "the text ends inside a string");
    if (!text_utf8_valid((struct text){out, (size_t)(to - out)}))
        return fail(d, place, "invalid UTF-8 in the string that ends");
    d->at++;
    lua_pushlstring(d->L, out, (size_t)(to - out));
    if (large)
        lua_remove(d->L, -2);
    return STATUS_OK;
}

/* d->at stands behind the opening quote. */
static enum status decode_string(struct decoder *d,
                                 const struct json_place *place)
{
    const char *start = d->at, *at = start, *end = d->end;
    unsigned char high = 0;

    while (at < end && CLASS[(unsigned char)*at] == 0)
        high |= (unsigned char)*at++;
    d->at = at;
    if (at == end || *at != '"')
        return decode_long_string(d, start, place);
    if (high >= 0x80 &&
        !text_utf8_valid((struct text){start, (size_t)(at - start)}))
        return fail(d, place, "invalid UTF-8 in the string that ends");
    d->at = at + 1;
    lua_pushlstring(d->L, start, (size_t)(at - start));
    return STATUS_OK;
}

/* Exact for any number of digits, and the locale does not matter. */
static double read_double(struct decoder *d, const char *start, size_t len)
{
    char small[NUMBER_SIZE], *copy = small;
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    double number;

    if (len >= sizeof(small))
        copy = lua_newuserdata(d->L, len + 1);
    memcpy(copy, start, len);
    copy[len] = '\0';
    number = strtod_l(copy, NULL, plain);
    freelocale(plain);
    if (copy != small)
        lua_pop(d->L, 1);
    return number;
}

/* The parts of a number as written. */
struct number {
    bool negative;
    bool integer;      /* neither fraction nor exponent */
    int digits;        /* significant ones, capped */
    uint64_t mantissa; /* of the first 19 digits */
    int scale;         /* digits behind the point */
    int exponent;
};

static const char *scan_digits(const char *at, const char *end,
                               struct number *n, bool fraction)
{
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        if (n->digits < 19)
            n->mantissa = n->mantissa * 10 + (uint64_t)(*at - '0');
        if (n->mantissa != 0 && n->digits < 1000)
            n->digits++;
        if (fraction && n->scale < 1000)
            n->scale++;
    }
    return at;
}

/* Moves d->at past the number; false when it is none. */
static bool scan_number(struct decoder *d, struct number *n)
{
    const char *at = d->at, *end = d->end, *first;

    *n = (struct number){.negative = *at == '-', .integer = true};
    at += n->negative;
    first = at;
    at = scan_digits(at, end, n, false);
    if (at == first || (*first == '0' && at - first > 1))
        return false;
    if (at < end && *at == '.') {
        n->integer = false;
        first = ++at;
        at = scan_digits(at, end, n, true);
        if (at == first)
            return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        bool minus;

        n->integer = false;
        at++;
        minus = at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        first = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if (n->exponent < 10000)
                n->exponent = n->exponent * 10 + (*at - '0');
        if (at == first)
            return false;
        if (minus)
            n->exponent = -n->exponent;
    }
    d->at = at;
    return true;
}

static bool fits_int64(const struct number *n)
{
    return n->digits < 19 || (n->digits == 19 &&
                              n->mantissa <= (uint64_t)INT64_MAX + n->negative);
}

static enum status fail_number(struct decoder *d,
                               const struct json_place *place, const char *what,
                               const char *start, const char *room)
{
    size_t len = (size_t)(d->at - start);

    return json_place_fail(place, d->root, d->diag,
                           "%s %.*s%s does not fit into %s; write such values "
                           "as text",
                           what, (int)(len < 60 ? len : 60), start,
                           len > 60 ? "..." : "", room);
}

static enum status decode_number(struct decoder *d,
                                 const struct json_place *place)
{
    const char *start = d->at;
    struct number n;
    double number;
    int exponent;

    if (!scan_number(d, &n))
        return fail(d, place, "bad number");
    if (n.integer && n.mantissa <= (uint64_t)INT64_EXACT && n.digits < 19) {
        number = (double)n.mantissa;
        lua_pushnumber(d->L, n.negative ? -number : number);
        return STATUS_OK;
    }
    if (n.integer && !fits_int64(&n))
        return fail_number(d, place, "the integer", start, "64 bits");
    if (n.integer) {
        int64_push(d->L, n.negative ? (int64_t)(0 - n.mantissa)
                                    : (int64_t)n.mantissa);
        return STATUS_OK;
    }
    exponent = n.exponent - n.scale;
    if (n.digits < 19 && n.mantissa <= (uint64_t)INT64_EXACT &&
        exponent >= -22 && exponent <= 22) {
        /* both operands are exact, so the one rounding is the right one */
        number = (double)n.mantissa;
        number = exponent < 0 ? number / POWERS[-exponent]
                              : number * POWERS[exponent];
        number = n.negative ? -number : number;
    } else {
        number = read_double(d, start, (size_t)(d->at - start));
        if (isinf(number))
            return fail_number(d, place, "the number", start, "a double");
    }
    lua_pushnumber(d->L, number);
    return STATUS_OK;
}

/* Room for a container, its key and the value in it. */
static enum status enter(struct decoder *d, const struct json_place *up,
                         struct json_place *place)
{
    *place = (struct json_place){.up = up};
    place->depth = up != NULL ? up->depth + 1 : 1;
    if (place->depth > JSON_DEPTH_MAX || !lua_checkstack(d->L, 8))
        return json_place_fail(NULL, d->root, d->diag,
                               "nested deeper than %d levels", JSON_DEPTH_MAX);
    return STATUS_OK;
}

static enum status decode_array(struct decoder *d, const struct json_place *up)
{
    struct json_place place;
    enum status status = enter(d, up, &place);

    if (status != STATUS_OK)
        return status;
    lua_newtable(d->L);
    json_tags_push_array(d->L);
    lua_setmetatable(d->L, -2);
    d->at++;
    skip_space(d);
    if (d->at < d->end && *d->at == ']') {
        d->at++;
        return STATUS_OK;
    }
    for (;;) {
        place.index++;
        status = decode_value(d, &place);
        if (status != STATUS_OK)
            return status;
        lua_rawseti(d->L, -2, (int)place.index);
        skip_space(d);
        if (d->at == d->end || (*d->at != ',' && *d->at != ']'))
            return fail(d, up, "expected , or ] in an array");
        if (*d->at++ == ']')
            return STATUS_OK;
    }
}

/* A first guess at the number of members saves growing the table. */
static int guess_members(const struct decoder *d, const struct json_place *up)
{
    size_t guess = (size_t)(d->end - d->at) / MEMBER_BYTES + 1;

    if (up != NULL)
        return FIRST_SIZE;
    return guess > ROOT_SIZE ? ROOT_SIZE : (int)guess;
}

static enum status decode_member(struct decoder *d, const struct json_place *up,
                                 struct json_place *place)
{
    enum status status;

    skip_space(d);
    if (d->at == d->end || *d->at != '"')
        return fail(d, up, "expected a name in quotes");
    d->at++;
    status = decode_string(d, up);
    if (status != STATUS_OK)
        return status;
    place->key.data = lua_tolstring(d->L, -1, &place->key.len);
    skip_space(d);
    if (d->at == d->end || *d->at != ':')
        return fail(d, place, "expected : behind a name");
    d->at++;
    status = decode_value(d, place);
    if (status != STATUS_OK)
        return status;
    lua_rawset(d->L, -3);
    return STATUS_OK;
}

static enum status decode_object(struct decoder *d, const struct json_place *up)
{
    struct json_place place;
    enum status status = enter(d, up, &place);

    if (status != STATUS_OK)
        return status;
    lua_createtable(d->L, 0, guess_members(d, up));
    d->at++;
    skip_space(d);
    if (d->at < d->end && *d->at == '}') {
        d->at++;
        return STATUS_OK;
    }
    for (;;) {
        status = decode_member(d, up, &place);
        if (status != STATUS_OK)
            return status;
        skip_space(d);
        if (d->at == d->end || (*d->at != ',' && *d->at != '}'))
            return fail(d, up, "expected , or } in an object");
        if (*d->at++ == '}')
            return STATUS_OK;
    }
}

static bool take_word(struct decoder *d, const char *word, size_t len)
{
    if ((size_t)(d->end - d->at) < len || memcmp(d->at, word, len) != 0)
        return false;
    d->at += len;
    return true;
}

static enum status decode_value(struct decoder *d, const struct json_place *up)
{
    skip_space(d);
    if (d->at == d->end)
        return fail(d, up, "the text ends where a value is expected");
    switch (*d->at) {
    case '"':
        d->at++;
        return decode_string(d, up);
    case '{':
        return decode_object(d, up);
    case '[':
        return decode_array(d, up);
    case 't':
        if (!take_word(d, "true", 4))
            break;
        lua_pushboolean(d->L, 1);
        return STATUS_OK;
    case 'f':
        if (!take_word(d, "false", 5))
            break;
        lua_pushboolean(d->L, 0);
        return STATUS_OK;
    case 'n':
        if (!take_word(d, "null", 4))
            break;
        lua_pushlightuserdata(d->L, NULL);
        return STATUS_OK;
    default:
        if (*d->at == '-' || (*d->at >= '0' && *d->at <= '9'))
            return decode_number(d, up);
    }
    return fail(d, up, "expected a value");
}

enum status json_codec_decode(lua_State *L, struct text json, const char *root,
                              struct diag *diag)
{
    struct decoder d = {
        .L = L,
        .start = json.data,
        .at = json.data,
        .end = json.data + json.len,
        .root = root,
        .diag = diag,
    };
    int top = lua_gettop(L);
    enum status status;

    if (!lua_checkstack(L, 8))
        return diag_set(diag, STATUS_INVALID, "%s: Lua stack overflow", root);
    status = decode_value(&d, NULL);
    if (status == STATUS_OK) {
        skip_space(&d);
        if (d.at != d.end)
            status = fail(&d, NULL, "something follows the value");
    }
    if (status != STATUS_OK)
        lua_settop(L, top);
    return status;
}
