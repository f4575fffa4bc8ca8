#include "db/placeholder.h"

enum style {
    STYLE_QUESTION_NUMBER, /* ?1 */
    STYLE_DOLLAR_NUMBER,   /* $1 */
    STYLE_QUESTION,        /* ? */
};

/* What a dialect's tokens look like, as far as a `?` could hide in them. */
struct syntax {
    const char *dialect;
    enum style style;
    bool backtick;          /* `name` */
    bool bracket;           /* [name] */
    bool dollar_quote;      /* $tag$ ... $tag$ */
    bool nested_comment;    /* comments in comments */
    bool hash_comment;      /* # to the end of the line */
    bool dashes_need_space; /* `--` is a comment only before white space */
    bool e_string;          /* escapes in E'...' */
};

static const struct syntax syntaxes[] = {
    {.dialect = "sqlite",
     .style = STYLE_QUESTION_NUMBER,
     .backtick = true,
     .bracket = true},
    {.dialect = "postgres",
     .style = STYLE_DOLLAR_NUMBER,
     .dollar_quote = true,
     .nested_comment = true,
     .e_string = true},
    {.dialect = "mysql",
     .style = STYLE_QUESTION,
     .backtick = true,
     .hash_comment = true,
     .dashes_need_space = true}, /* NO_BACKSLASH_ESCAPES: mysql_connect.c */
};

struct scanner {
    const struct syntax *syntax;
    const char *start;
    const char *at;
    const char *end;
    struct diag *diag;
};

static char peek(const struct scanner *scan, size_t ahead)
{
    return (size_t)(scan->end - scan->at) > ahead ? scan->at[ahead] : '\0';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes above 127 belong to letters of names. */
static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c) || c == '$';
}

static enum status unterminated(const struct scanner *scan, const char *what,
                                const char *opened)
{
    return diag_set(scan->diag, STATUS_INVALID,
                    "the SQL has %s that does not end, at byte %zu", what,
                    (size_t)(opened - scan->start));
}

/* From an opening quote to behind the closing one; a doubled one is part of
 * the text. */
static enum status skip_quoted(struct scanner *scan, char close, bool backslash,
                               const char *what)
{
    const char *opened = scan->at;

    scan->at++;
    while (scan->at < scan->end) {
        char c = *scan->at++;

        if (backslash && c == '\\' && scan->at < scan->end) {
            scan->at++;
        } else if (c == close) {
            if (close == ']' || peek(scan, 0) != close)
                return STATUS_OK;
            scan->at++;
        }
    }
    return unterminated(scan, what, opened);
}

static enum status skip_block_comment(struct scanner *scan)
{
    const char *opened = scan->at;
    size_t depth = 1;

    scan->at += 2;
    while (scan->at < scan->end) {
        if (peek(scan, 0) == '*' && peek(scan, 1) == '/') {
            scan->at += 2;
            if (--depth == 0)
                return STATUS_OK;
        } else if (scan->syntax->nested_comment && peek(scan, 0) == '/' &&
                   peek(scan, 1) == '*') {
            scan->at += 2;
            depth++;
        } else {
            scan->at++;
        }
    }
    return unterminated(scan, "a comment", opened);
}

static void skip_line(struct scanner *scan)
{
    while (scan->at < scan->end && *scan->at != '\n')
        scan->at++;
}

static bool at_line_comment(const struct scanner *scan)
{
    if (scan->syntax->hash_comment && peek(scan, 0) == '#')
        return true;
    if (peek(scan, 0) != '-' || peek(scan, 1) != '-')
        return false;
    return !scan->syntax->dashes_need_space || scan->end - scan->at == 2 ||
           is_space(peek(scan, 2));
}

/* Length of $tag$ at the scanner, 0 when there is none. */
static size_t dollar_tag(const struct scanner *scan)
{
    size_t len = 1;

    if (!scan->syntax->dollar_quote || peek(scan, 0) != '$' ||
        is_digit(peek(scan, 1)))
        return 0;
    while (is_name_start(peek(scan, len)) || is_digit(peek(scan, len)))
        len++;
    return peek(scan, len) == '$' ? len + 1 : 0;
}

static enum status skip_dollar_quote(struct scanner *scan, size_t len)
{
    const char *tag = scan->at;
    const char *close;

    scan->at += len;
    close = memmem(scan->at, (size_t)(scan->end - scan->at), tag, len);
    if (close == NULL)
        return unterminated(scan, "a dollar quote", tag);
    scan->at = close + len;
    return STATUS_OK;
}

/* A name or number as a whole, so that its `$` and E are not mistaken. */
static enum status skip_word(struct scanner *scan)
{
    const char *word = scan->at;
    bool e;

    while (is_name(peek(scan, 0)))
        scan->at++;
    e = scan->at - word == 1 && (*word == 'e' || *word == 'E');
    if (scan->syntax->e_string && e && peek(scan, 0) == '\'')
        return skip_quoted(scan, '\'', true, "a string");
    return STATUS_OK;
}

static enum status skip_token(struct scanner *scan)
{
    const struct syntax *syntax = scan->syntax;
    size_t tag = dollar_tag(scan);
    char c = peek(scan, 0);

    if (c == '\'')
        return skip_quoted(scan, c, false, "a string");
    if (c == '"')
        return skip_quoted(scan, c, false, "a quoted name");
    if (c == '`' && syntax->backtick)
        return skip_quoted(scan, c, false, "a quoted name");
    if (c == '[' && syntax->bracket)
        return skip_quoted(scan, ']', false, "a quoted name");
    if (c == '/' && peek(scan, 1) == '*')
        return skip_block_comment(scan);
    if (tag > 0)
        return skip_dollar_quote(scan, tag);
    if (at_line_comment(scan))
        skip_line(scan);
    else if (is_name_start(c) || is_digit(c))
        return skip_word(scan);
    else
        scan->at++;
    return STATUS_OK;
}

static enum status write_parameter(struct scanner *scan, struct buffer *out,
                                   size_t *count)
{
    const char *sign = scan->at;

    scan->at++;
    if (peek(scan, 0) == '?') {
        scan->at++;
        buffer_append_char(out, '?');
        return STATUS_OK;
    }
    if (is_name(peek(scan, 0)))
        return diag_set(scan->diag, STATUS_INVALID,
                        "the SQL has a ? with a letter or digit behind it, at "
                        "byte %zu; parameters are a plain ? (and ?? is a "
                        "question mark)",
                        (size_t)(sign - scan->start));
    ++*count;
    switch (scan->syntax->style) {
    case STYLE_QUESTION_NUMBER:
        buffer_printf(out, "?%zu", *count);
        break;
    case STYLE_DOLLAR_NUMBER:
        buffer_printf(out, "$%zu", *count);
        break;
    case STYLE_QUESTION:
        buffer_append_char(out, '?');
        break;
    }
    return STATUS_OK;
}

static const struct syntax *syntax_of(const char *dialect)
{
    for (size_t i = 0; i < sizeof(syntaxes) / sizeof(syntaxes[0]); i++) {
        if (strcmp(syntaxes[i].dialect, dialect) == 0)
            return &syntaxes[i];
    }
    return NULL;
}

enum status placeholder_rewrite(struct text sql, const char *dialect,
                                struct buffer *out, size_t *count,
                                struct diag *diag)
{
    struct scanner scan = {.syntax = syntax_of(dialect),
                           .start = sql.data,
                           .at = sql.data,
                           .end = sql.data + sql.len,
                           .diag = diag};
    enum status status = STATUS_OK;

    *count = 0;
    if (scan.syntax == NULL)
        return diag_set(diag, STATUS_INVALID, "there is no dialect \"%s\"",
                        dialect);
    if (sql.len > 0 && memchr(sql.data, '\0', sql.len) != NULL)
        return diag_set(diag, STATUS_INVALID,
                        "the SQL has a NUL byte in it, at byte %zu",
                        strlen(sql.data));
    while (status == STATUS_OK && scan.at < scan.end) {
        const char *token = scan.at;

        if (*token == '?') {
            status = write_parameter(&scan, out, count);
            continue;
        }
        status = skip_token(&scan);
        buffer_append(out, token, (size_t)(scan.at - token));
    }
    return status;
}

static bool at_comment(const struct scanner *scan)
{
    if (at_line_comment(scan))
        return true;
    if (peek(scan, 0) != '/' || peek(scan, 1) != '*')
        return false;
    /* this one is run */
    return !scan->syntax->hash_comment || peek(scan, 2) != '!';
}

void placeholder_tokens(struct text sql, const char *dialect,
                        struct buffer *out)
{
    struct scanner scan = {.syntax = syntax_of(dialect),
                           .start = sql.data,
                           .at = sql.data,
                           .end = text_end(sql)};

    if (scan.syntax == NULL) {
        buffer_append_text(out, sql);
        return;
    }
    while (scan.at < scan.end) {
        const char *token = scan.at;
        bool passed = at_comment(&scan);

        if (is_space(*token)) {
            scan.at++;
            continue;
        }
        if (skip_token(&scan) != STATUS_OK)
            scan.at = scan.end;
        if (passed)
            continue;
        buffer_append(out, token, (size_t)(scan.at - token));
        buffer_append_char(out, '\0');
    }
}
