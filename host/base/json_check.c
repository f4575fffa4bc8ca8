#include "base/json.h"

#include "base/json_scan.h"
#include "base/utf8.h"

/* What may stand at `at`. */
enum expect {
    EXPECT_VALUE,
    EXPECT_FIRST_VALUE, /* or the end of the array */
    EXPECT_KEY,
    EXPECT_FIRST_KEY, /* or the end of the object */
    EXPECT_NEXT,      /* a comma, or the end of what is open */
    EXPECT_NOTHING,   /* the value is complete */
    EXPECT_FAILED,    /* `why` is set, `at` is where */
};

struct checker {
    const char *at;
    const char *end;
    const char *why;
    unsigned depth;
    uint64_t objects[JSON_DEPTH_MAX / 64]; /* bit per level: it is an object */
};

static inline enum expect fail(struct checker *c, const char *why)
{
    c->why = why;
    return EXPECT_FAILED;
}

static inline void skip_white(struct checker *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' ||
                              *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

static inline enum expect open_level(struct checker *c, bool object)
{
    unsigned level = c->depth;

    if (level == JSON_DEPTH_MAX)
        return fail(c, "nested deeper than 512 levels");
    if (object)
        c->objects[level / 64] |= UINT64_C(1) << level % 64;
    else
        c->objects[level / 64] &= ~(UINT64_C(1) << level % 64);
    c->depth++;
    c->at++;
    return object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
}

static inline bool in_object(const struct checker *c)
{
    unsigned level = c->depth - 1;

    return (c->objects[level / 64] >> level % 64 & 1) != 0;
}

static inline enum expect after_value(const struct checker *c)
{
    return c->depth > 0 ? EXPECT_NEXT : EXPECT_NOTHING;
}

static inline enum expect close_level(struct checker *c)
{
    c->at++;
    c->depth--;
    return after_value(c);
}

/* Four hex digits at `at`, -1 when they are none. */
static int32_t read_hex4(const char *at, const char *end)
{
    int32_t value = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int32_t digit = (unsigned char)at[i];

        if (digit >= '0' && digit <= '9')
            digit -= '0';
        else if (digit >= 'a' && digit <= 'f')
            digit -= 'a' - 10;
        else if (digit >= 'A' && digit <= 'F')
            digit -= 'A' - 10;
        else
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* `at` is on a backslash; NULL or why the escape is refused. */
static const char *check_escape(struct checker *c)
{
    const char *end = c->end;
    const char *at = c->at;
    int32_t unit;

    if (end - at < 2) {
        c->at = end;
        return "the string is not closed";
    }
    if (at[1] != 'u') {
        if (at[1] == '\0' || strchr("\"\\/bfnrt", at[1]) == NULL)
            return "unknown escape";
        c->at += 2;
        return NULL;
    }
    unit = read_hex4(at + 2, end);
    if (unit < 0)
        return "four hex digits must follow \\u";
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return "a low surrogate without a high one before it";
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        int32_t low = -1;

        if (end - at >= 12 && at[6] == '\\' && at[7] == 'u')
            low = read_hex4(at + 8, end);
        if (low < 0xDC00 || low > 0xDFFF)
            return "a high surrogate without a low one behind it";
        c->at += 6;
    }
    c->at += 6;
    return NULL;
}

/* `at` is on the opening quote; false when `why` is set. */
static inline bool check_string(struct checker *c)
{
    c->at++;
    for (;;) {
        size_t len;

        c->at = json_scan_special_or_high(c->at, c->end);
        if (c->at == c->end) {
            c->why = "the string is not closed";
            return false;
        }
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\') {
            c->why = check_escape(c);
            if (c->why != NULL)
                return false;
            continue;
        }
        if ((unsigned char)*c->at < 0x20) {
            c->why = "a control character must be written as an escape";
            return false;
        }
        /* Characters beyond ASCII come in runs. */
        do {
            len = utf8_char(c->at, c->end);
            if (len == 0) {
                c->why = "no valid UTF-8";
                return false;
            }
            c->at += len;
        } while (c->at < c->end && (*c->at & 0x80) != 0);
    }
}

static inline bool skip_digits(struct checker *c)
{
    const char *first = c->at;

    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > first;
}

static inline enum expect check_number(struct checker *c)
{
    if (*c->at == '-')
        c->at++;
    if (c->at < c->end && *c->at == '0') {
        c->at++;
        if (c->at < c->end && *c->at >= '0' && *c->at <= '9')
            return fail(c, "a number must not start with 0");
    } else if (!skip_digits(c)) {
        return fail(c, "expected a digit");
    }
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!skip_digits(c))
            return fail(c, "expected a digit");
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        if (!skip_digits(c))
            return fail(c, "expected a digit");
    }
    return after_value(c);
}

static inline enum expect check_word(struct checker *c, struct text word)
{
    size_t left = (size_t)(c->end - c->at);

    if (left < word.len || memcmp(c->at, word.data, word.len) != 0)
        return fail(c, "expected a value");
    c->at += word.len;
    return after_value(c);
}

static inline enum expect check_value(struct checker *c)
{
    skip_white(c);
    if (c->at == c->end)
        return fail(c, "expected a value");
    switch (*c->at) {
    case '{':
        return open_level(c, true);
    case '[':
        return open_level(c, false);
    case '"':
        return check_string(c) ? after_value(c) : EXPECT_FAILED;
    case 't':
        return check_word(c, TEXT_LITERAL("true"));
    case 'f':
        return check_word(c, TEXT_LITERAL("false"));
    case 'n':
        return check_word(c, TEXT_LITERAL("null"));
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return check_number(c);
    default:
        return fail(c, "expected a value");
    }
}

/* A key with its colon. */
static inline enum expect check_key(struct checker *c, const char *expected)
{
    skip_white(c);
    if (c->at == c->end || *c->at != '"')
        return fail(c, expected);
    if (!check_string(c))
        return EXPECT_FAILED;
    skip_white(c);
    if (c->at == c->end || *c->at != ':')
        return fail(c, "expected ':'");
    c->at++;
    return EXPECT_VALUE;
}

static inline enum expect check_next(struct checker *c)
{
    bool object = in_object(c);

    skip_white(c);
    if (c->at < c->end && *c->at == ',') {
        c->at++;
        return object ? EXPECT_KEY : EXPECT_VALUE;
    }
    if (c->at < c->end && *c->at == (object ? '}' : ']'))
        return close_level(c);
    return fail(c, object ? "expected ',' or '}'" : "expected ',' or ']'");
}

/* True when the container that was just opened is empty. */
static inline bool at_close(struct checker *c, char close)
{
    skip_white(c);
    return c->at < c->end && *c->at == close;
}

static enum expect check_all(struct checker *c)
{
    enum expect expect = EXPECT_VALUE;

    for (;;) {
        switch (expect) {
        case EXPECT_FIRST_VALUE:
            expect = at_close(c, ']') ? close_level(c) : check_value(c);
            break;
        case EXPECT_VALUE:
            expect = check_value(c);
            break;
        case EXPECT_FIRST_KEY:
            expect = at_close(c, '}')
                         ? close_level(c)
                         : check_key(c, "expected a key in quotes or '}'");
            break;
        case EXPECT_KEY:
            expect = check_key(c, "expected a key in quotes");
            break;
        case EXPECT_NEXT:
            expect = check_next(c);
            break;
        case EXPECT_NOTHING:
            skip_white(c);
            if (c->at < c->end)
                return fail(c, "unexpected text after the value");
            return EXPECT_NOTHING;
        case EXPECT_FAILED:
            return EXPECT_FAILED;
        }
    }
}

enum status json_check(struct text t, size_t *offset, struct diag *diag)
{
    const char *data = t.data != NULL ? t.data : "";
    struct checker checker = {.at = data, .end = data + t.len};
    size_t at;

    if (check_all(&checker) == EXPECT_NOTHING)
        return STATUS_OK;
    at = (size_t)(checker.at - data);
    if (offset != NULL)
        *offset = at;
    return diag_set(diag, STATUS_INVALID, "%s at byte %zu", checker.why, at);
}
