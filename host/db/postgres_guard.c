#include "db/postgres.h"

#include <stdio.h>
#include <strings.h>

/* --- tokens -------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes above 127 belong to letters of names. */
static bool is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_word(char c)
{
    return is_word_start(c) || is_digit(c) || c == '$';
}

static const char *skip_line(const char *at, const char *end)
{
    while (at < end && *at != '\n')
        at++;
    return at;
}

/* Comments nest. */
static const char *skip_comment(const char *at, const char *end)
{
    int depth = 0;

    while (end - at >= 2) {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            at += 2;
            if (--depth == 0)
                return at;
        } else {
            at++;
        }
    }
    return end;
}

static const char *skip_quoted(const char *at, const char *end, bool backslash)
{
    char quote = *at++;

    while (at < end) {
        char c = *at++;
        bool skips = (backslash && c == '\\' && at < end) ||
                     (c == quote && at < end && *at == quote);

        if (skips)
            at++;
        else if (c == quote)
            return at;
    }
    return end;
}

/* $tag$ ... $tag$; `at` itself when there is none. */
static const char *skip_dollar(const char *at, const char *end)
{
    const char *body = at + 1;
    const char *close;
    size_t len;

    if (body < end && is_digit(*body))
        return at;
    while (body < end && *body != '$' && is_word(*body))
        body++;
    if (body == end || *body != '$')
        return at;
    len = (size_t)(++body - at);
    close = memmem(body, (size_t)(end - body), at, len);
    return close != NULL ? close + len : end;
}

/* Behind what begins at `at`, which is no white space: a comment, a quoted
 * thing, a word or one sign. */
static const char *skip_token(const char *at, const char *end)
{
    const char *word = at;

    if (end - at >= 2 && at[0] == '-' && at[1] == '-')
        return skip_line(at, end);
    if (end - at >= 2 && at[0] == '/' && at[1] == '*')
        return skip_comment(at, end);
    if (*at == '\'' || *at == '"')
        return skip_quoted(at, end, false);
    if (*at == '$') {
        const char *behind = skip_dollar(at, end);

        return behind != at ? behind : at + 1;
    }
    while (at < end && is_word(*at))
        at++;
    if (at == word)
        return at + 1;
    if (at - word == 1 && (*word == 'e' || *word == 'E') && at < end &&
        *at == '\'')
        return skip_quoted(at, end, true);
    return at;
}

static bool is_comment(const char *at, const char *end)
{
    return end - at >= 2 &&
           ((at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*'));
}

const char *postgres_guard_skip(const char *at, const char *end)
{
    while (at < end && (is_space(*at) || *at == ';' || is_comment(at, end)))
        at = is_comment(at, end) ? skip_token(at, end) : at + 1;
    return at;
}

const char *postgres_guard_end(const char *at, const char *end)
{
    while (at < end && *at != ';')
        at = is_space(*at) ? at + 1 : skip_token(at, end);
    return at;
}

void postgres_guard_number(struct text sql, struct buffer *out)
{
    const char *at = sql.data;
    const char *end = at + sql.len;

    while (at < end) {
        const char *token = at;

        if (*at == '?' && end - at >= 2 && is_digit(at[1])) {
            buffer_append_char(out, '$');
            at++;
            continue;
        }
        at = is_space(*at) ? at + 1 : skip_token(at, end);
        buffer_append(out, token, (size_t)(at - token));
    }
}

/* `$7 IS NULL` says nothing about the type of the value, and the server
 * refuses to guess. */
void postgres_guard_untyped(struct text sql, unsigned *types, size_t count)
{
    const char *at = sql.data;
    const char *end = at + sql.len;

    while (at < end) {
        size_t number = 0;

        if (*at != '$' || end - at < 2 || !is_digit(at[1])) {
            at = is_space(*at) ? at + 1 : skip_token(at, end);
            continue;
        }
        for (at++; at < end && is_digit(*at) && number <= count; at++)
            number = 10 * number + (size_t)(*at - '0');
        while (at < end && is_space(*at))
            at++;
        if (number > 0 && number <= count && types[number - 1] == 0 &&
            end - at > 2 && strncasecmp(at, "IS", 2) == 0 && !is_word(at[2]))
            types[number - 1] = PG_TEXT;
    }
}

/* --- what a script may not do -------------------------------------------- */

/*
 * A statement of a script begins with one of these words. The list names what
 * is allowed, so that whatever a server can do besides (SET, BEGIN, COPY,
 * LISTEN, DO, CALL, LOCK, DDL) is refused without being known here. One
 * statement is all that the extended protocol takes, so session and
 * transaction are the same after a script's statement as before it, and
 * nothing needs to be reset between handlers.
 */
static const char *const first_words[] = {"SELECT", "INSERT", "UPDATE",
                                          "DELETE", "WITH",   "VALUES",
                                          "MERGE",  "TABLE",  NULL};

/* Of a script that makes tables. */
static const char *const script_words[] = {"CREATE", "COMMENT", "INSERT",
                                           "UPDATE", "DELETE",  "WITH",
                                           "SELECT", "GRANT",   NULL};

static const char *const writing_words[] = {"INSERT", "UPDATE", "DELETE",
                                            "MERGE", NULL};

/* Functions that change the session or outlive the transaction. */
static const char *const functions[] = {"set_config",
                                        "pg_advisory_lock",
                                        "pg_advisory_lock_shared",
                                        "pg_try_advisory_lock",
                                        "pg_try_advisory_lock_shared",
                                        "pg_advisory_unlock",
                                        "pg_advisory_unlock_shared",
                                        "pg_advisory_unlock_all",
                                        "dblink_connect",
                                        "dblink_exec",
                                        "pg_terminate_backend",
                                        "pg_cancel_backend",
                                        "lo_import",
                                        "lo_export",
                                        "pg_notify",
                                        NULL};

static bool is_one_of(const char *word, size_t len, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strlen(*list) == len && strncasecmp(word, *list, len) == 0)
            return true;
    }
    return false;
}

static enum status refuse(const char *word, size_t len, bool read,
                          struct diag *diag)
{
    char shown[65];

    text_clean((struct text){word, len < 64 ? len : 64}, shown, sizeof(shown));
    if (read)
        return diag_set(diag, STATUS_PERMANENT,
                        "a script may not run %s here: it may only read",
                        shown);
    return diag_set(diag, STATUS_PERMANENT,
                    "a script may not run %s: connection, transaction and "
                    "tables belong to the host (tables are created by the "
                    "declaration's fields or tables file)",
                    shown);
}

/* What is known at a word. SELECT ... INTO makes a table; the INTO of an
 * INSERT or MERGE does not. Behind it, behind UPDATE and behind DELETE FROM
 * stands the table that is written, with ONLY and a schema before it at most.
 */
struct words {
    const struct catalog_name *hosts;
    bool read;
    bool into_is_good;
    bool after_delete;
    bool target; /* a written table's name comes next */
};

static bool is_host_table(const struct catalog_name *hosts, const char *word,
                          size_t len)
{
    for (; hosts != NULL && hosts->value != NULL; hosts++) {
        if (strlen(hosts->value) == len &&
            strncasecmp(hosts->value, word, len) == 0)
            return true;
    }
    return false;
}

static enum status host_table(const char *word, size_t len, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT,
                    "a script may not run INSERT, UPDATE or DELETE on a table "
                    "of the host: %.*s may only be read",
                    (int)len, word);
}

static bool is_word_of(const char *word, size_t len, const char *wanted)
{
    return len == strlen(wanted) && strncasecmp(word, wanted, len) == 0;
}

/* `next` is the sign behind the word. */
static enum status check_target(struct words *seen, const char *word,
                                size_t len, char next, struct diag *diag)
{
    bool target = seen->target;

    seen->target = is_word_of(word, len, "INTO") ||
                   is_word_of(word, len, "UPDATE") ||
                   (seen->after_delete && is_word_of(word, len, "FROM"));
    seen->after_delete = is_word_of(word, len, "DELETE");
    if (!target)
        return STATUS_OK;
    if (next == '.' || is_word_of(word, len, "ONLY")) {
        seen->target = true;
        return STATUS_OK;
    }
    return is_host_table(seen->hosts, word, len) ? host_table(word, len, diag)
                                                 : STATUS_OK;
}

static enum status check_word(struct words *seen, const char *word, size_t len,
                              struct diag *diag)
{
    if (is_one_of(word, len, functions))
        return refuse(word, len, false, diag);
    if (seen->read && is_one_of(word, len, writing_words))
        return refuse(word, len, true, diag);
    if (len == 4 && strncasecmp(word, "INTO", 4) == 0 && !seen->into_is_good)
        return refuse("SELECT ... INTO", 15, false, diag);
    seen->into_is_good = is_one_of(
        word, len, (const char *const[]){"INSERT", "MERGE", NULL});
    return STATUS_OK;
}

/* A quoted name may be a function's, too. */
static void unquote(const char **word, size_t *len)
{
    if (**word == '"' && *len >= 2) {
        ++*word;
        *len -= 2;
    }
}

static enum status check_words(const char *at, const char *end,
                               enum db_origin origin,
                               const struct catalog_name *hosts,
                               struct diag *diag)
{
    struct words seen = {.read = origin == DB_SCRIPT_READ, .hosts = hosts};
    enum status status = STATUS_OK;

    while (status == STATUS_OK && at < end) {
        const char *word = at;
        size_t len;

        if (is_space(*at) || is_comment(at, end)) {
            at = is_space(*at) ? at + 1 : skip_token(at, end);
            continue;
        }
        at = skip_token(at, end);
        len = (size_t)(at - word);
        if (*word == '"') {
            unquote(&word, &len);
            if (is_one_of(word, len, functions))
                status = refuse(word, len, false, diag);
        } else if (is_word_start(*word)) {
            status = check_word(&seen, word, len, diag);
        } else {
            continue;
        }
        if (status == STATUS_OK)
            status = check_target(&seen, word, len, at < end ? *at : ' ', diag);
    }
    return status;
}

static const char *first_word(struct text sql, size_t *len)
{
    const char *end = sql.data + sql.len;
    const char *at = postgres_guard_skip(sql.data, end);
    const char *word;

    while (at < end && *at == '(') /* (SELECT ...) UNION ... */
        at = postgres_guard_skip(at + 1, end);
    word = at;
    while (at < end && is_word(*at))
        at++;
    *len = (size_t)(at - word);
    return word;
}

enum status postgres_guard_check_table(const char *table, enum db_origin origin,
                                       const struct catalog_name *hosts,
                                       struct diag *diag)
{
    if (origin == DB_HOST || origin == DB_PERSON ||
        !is_host_table(hosts, table, strlen(table)))
        return STATUS_OK;
    return host_table(table, strlen(table), diag);
}

enum status postgres_guard_check(struct text sql, enum db_origin origin,
                                 const struct catalog_name *hosts,
                                 struct diag *diag)
{
    const char *end = sql.data + sql.len;
    const char *word;
    const char *tail;
    size_t len;

    if (origin == DB_HOST || origin == DB_PERSON)
        return STATUS_OK;
    word = first_word(sql, &len);
    if (word == end)
        return diag_set(diag, STATUS_PERMANENT, "the statement is empty");
    tail = postgres_guard_end(word, end);
    if (postgres_guard_skip(tail, end) < end)
        return diag_set(diag, STATUS_PERMANENT,
                        "only one statement can be run at a time; more "
                        "follows after the first semicolon");
    if (!is_one_of(word, len, first_words))
        return refuse(word, len, false, diag);
    return check_words(word, tail, origin, hosts, diag);
}

enum status postgres_guard_check_script(struct text sql,
                                        const struct catalog_name *hosts,
                                        struct diag *diag)
{
    const char *end = sql.data + sql.len;
    const char *word;
    const char *next;
    size_t len;

    word = first_word(sql, &len);
    next = postgres_guard_skip(word + len, end);
    if (is_one_of(word, len, script_words) &&
        !(end - next > 4 && strncasecmp(next, "TEMP", 4) == 0))
        return is_one_of(word, len, (const char *const[]){"CREATE", NULL})
                   ? STATUS_OK
                   : check_words(word, end, DB_SCRIPT, hosts, diag);
    return diag_set(diag, STATUS_PERMANENT,
                    "a script may not run %.*s: connection, transaction and "
                    "tables belong to the host",
                    len < 64 ? (int)len : 64, word);
}
