#include "db/mysql_scan.h"

#include "base/memory.h"

#include <strings.h>

static char peek(const struct mysql_scan *scan, size_t ahead)
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
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void skip_line(struct mysql_scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\n')
        scan->at++;
}

/* Two dashes are a comment only before white space. */
static bool at_line_comment(const struct mysql_scan *scan)
{
    if (peek(scan, 0) == '#')
        return true;
    return peek(scan, 0) == '-' && peek(scan, 1) == '-' &&
           (scan->end - scan->at == 2 || is_space(peek(scan, 2)));
}

static bool at_hidden(const struct mysql_scan *scan)
{
    return peek(scan, 2) == '!' ||
           (peek(scan, 2) == 'M' && peek(scan, 3) == '!');
}

static void skip_block_comment(struct mysql_scan *scan)
{
    const char *close = memmem(scan->at + 2, (size_t)(scan->end - scan->at) - 2,
                               "*/", 2);

    scan->at = close != NULL ? close + 2 : scan->end;
}

static void skip_quoted(struct mysql_scan *scan)
{
    char quote = *scan->at++;

    while (scan->at < scan->end) {
        if (*scan->at++ != quote)
            continue;
        if (peek(scan, 0) != quote)
            return;
        scan->at++; /* doubled: part of the text */
    }
}

/* Passes white space and comments; true at a comment that is executed. */
static bool skip_blank(struct mysql_scan *scan)
{
    while (scan->at < scan->end) {
        if (is_space(*scan->at)) {
            scan->at++;
        } else if (at_line_comment(scan)) {
            skip_line(scan);
        } else if (peek(scan, 0) == '/' && peek(scan, 1) == '*') {
            if (at_hidden(scan))
                return true;
            skip_block_comment(scan);
        } else {
            break;
        }
    }
    return false;
}

static enum mysql_token_kind skip_token(struct mysql_scan *scan)
{
    char c = *scan->at;

    if (c == '\'') {
        skip_quoted(scan);
        return MYSQL_TOKEN_STRING;
    }
    if (c == '"' || c == '`') {
        skip_quoted(scan);
        return MYSQL_TOKEN_NAME;
    }
    if (is_word(c)) {
        while (is_word(peek(scan, 0)))
            scan->at++;
        return MYSQL_TOKEN_WORD;
    }
    scan->at++;
    if (c != '?')
        return MYSQL_TOKEN_SIGN;
    while (is_digit(peek(scan, 0)))
        scan->at++;
    return MYSQL_TOKEN_PARAM;
}

struct mysql_token mysql_scan_next(struct mysql_scan *scan)
{
    struct mysql_token token = {.kind = MYSQL_TOKEN_END};
    bool hidden = skip_blank(scan);

    token.text.data = scan->at;
    if (hidden) {
        token.kind = MYSQL_TOKEN_HIDDEN;
        skip_block_comment(scan);
    } else if (scan->at < scan->end) {
        token.kind = skip_token(scan);
    }
    token.text.len = (size_t)(scan->at - token.text.data);
    return token;
}

bool mysql_scan_is(const struct mysql_token *token, const char *word)
{
    return token->kind == MYSQL_TOKEN_WORD && token->text.len == strlen(word) &&
           strncasecmp(token->text.data, word, token->text.len) == 0;
}

/* --- parameters ----------------------------------------------------------- */

static void add_mark(struct mysql_marks *marks, struct text mark)
{
    unsigned number = 0;

    for (size_t i = 1; i < mark.len && number < 1000000; i++)
        number = number * 10 + (unsigned)(mark.data[i] - '0');
    number = number > 0 ? number - 1 : (unsigned)marks->nparams;
    if (marks->count == marks->capacity) {
        marks->capacity = marks->capacity == 0 ? 16 : 2 * marks->capacity;
        marks->numbers = mem_grow(marks->numbers, marks->capacity,
                                  sizeof(*marks->numbers));
    }
    marks->numbers[marks->count++] = number;
    if (number >= marks->nparams)
        marks->nparams = number + 1;
}

void mysql_scan_marks(struct text sql, struct buffer *out,
                      struct mysql_marks *marks)
{
    struct mysql_scan scan = {sql.data, sql.data + sql.len};
    const char *copied = sql.data;
    struct mysql_token token;

    while ((token = mysql_scan_next(&scan)).kind != MYSQL_TOKEN_END) {
        if (token.kind != MYSQL_TOKEN_PARAM)
            continue;
        buffer_append(out, copied, (size_t)(token.text.data + 1 - copied));
        copied = scan.at;
        add_mark(marks, token.text);
    }
    buffer_append(out, copied, (size_t)(scan.end - copied));
}

/* --- statements of a script ----------------------------------------------- */

static struct text trim(const char *start, const char *end)
{
    while (end > start && is_space(end[-1]))
        end--;
    return (struct text){start, (size_t)(end - start)};
}

/* At `DELIMITER x`: takes it and the line. */
static bool take_delimiter(struct mysql_scan *scan, struct text *delimiter)
{
    struct mysql_scan ahead = *scan;
    struct mysql_token word = mysql_scan_next(&ahead);
    const char *start;

    if (!mysql_scan_is(&word, "DELIMITER"))
        return false;
    while (ahead.at < ahead.end && (*ahead.at == ' ' || *ahead.at == '\t'))
        ahead.at++;
    start = ahead.at;
    skip_line(&ahead);
    *delimiter = trim(start, ahead.at);
    scan->at = ahead.at;
    return delimiter->len > 0;
}

static bool at_delimiter(const struct mysql_scan *scan, struct text delimiter)
{
    return (size_t)(scan->end - scan->at) >= delimiter.len &&
           memcmp(scan->at, delimiter.data, delimiter.len) == 0;
}

bool mysql_scan_statement(struct text script, size_t *at,
                          struct text *delimiter, struct text *statement)
{
    struct mysql_scan scan = {script.data + *at, script.data + script.len};
    const char *start;

    if (delimiter->len == 0)
        *delimiter = TEXT_LITERAL(";");
    for (;;) {
        (void)skip_blank(&scan);
        if (at_delimiter(&scan, *delimiter))
            scan.at += delimiter->len;
        else if (!take_delimiter(&scan, delimiter))
            break;
    }
    start = scan.at;
    while (scan.at < scan.end) {
        (void)skip_blank(&scan);
        if (scan.at == scan.end || at_delimiter(&scan, *delimiter))
            break;
        (void)mysql_scan_next(&scan);
    }
    *statement = trim(start, scan.at);
    if (at_delimiter(&scan, *delimiter))
        scan.at += delimiter->len;
    *at = (size_t)(scan.at - script.data);
    return statement->len > 0;
}
