#include "db/mysql_scan.h"

#include "db/catalog.h"

#include <strings.h>

/* Other words may begin no statement of a script: SET, BEGIN, COMMIT, LOCK,
 * USE, CALL, every DDL (it commits what came before) ... */
static const char *const reads[] = {"SELECT", "WITH", "VALUES", NULL};
static const char *const writes[] = {"INSERT", "UPDATE", "DELETE", "REPLACE",
                                     NULL};
/* Functions that change the session or leave the database. */
static const char *const functions[] = {
    "GET_LOCK",  "RELEASE_LOCK", "RELEASE_ALL_LOCKS",
    "LOAD_FILE", "SETVAL",       NULL};

static bool is_one_of(const struct mysql_token *token, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (mysql_scan_is(token, *words))
            return true;
    }
    return false;
}

static enum status refuse(struct text what, enum db_origin origin, bool creates,
                          struct diag *diag)
{
    if (origin == DB_SCRIPT_READ)
        return diag_set(diag, STATUS_PERMANENT,
                        "a script may not run " TEXT_FORMAT
                        " here: it may only read",
                        TEXT_ARGS(what));
    return diag_set(diag, STATUS_PERMANENT,
                    "a script may not run " TEXT_FORMAT
                    ": connection, transaction and tables belong to the "
                    "host%s",
                    TEXT_ARGS(what),
                    creates ? ""
                            : " (tables are created by the declaration's "
                              "fields or tables file)");
}

/* CREATE TABLE, CREATE [UNIQUE] INDEX, CREATE VIEW; a temporary table would
 * hide another one for the rest of the session. */
static bool creates_table(struct mysql_scan scan)
{
    struct mysql_token token = mysql_scan_next(&scan);

    if (mysql_scan_is(&token, "UNIQUE"))
        token = mysql_scan_next(&scan);
    return mysql_scan_is(&token, "TABLE") || mysql_scan_is(&token, "INDEX") ||
           mysql_scan_is(&token, "VIEW");
}

static enum status check_first(struct mysql_scan *scan, enum db_origin origin,
                               bool creates, struct diag *diag)
{
    struct mysql_token token;

    do {
        token = mysql_scan_next(scan);
    } while (token.kind == MYSQL_TOKEN_SIGN && token.text.data[0] == '(');
    if (token.kind == MYSQL_TOKEN_END)
        return diag_set(diag, STATUS_PERMANENT, "the statement is empty");
    if (is_one_of(&token, reads))
        return STATUS_OK;
    if (is_one_of(&token, writes) && origin == DB_SCRIPT)
        return STATUS_OK;
    if (creates && mysql_scan_is(&token, "CREATE") && creates_table(*scan))
        return STATUS_OK;
    return refuse(token.text, origin, creates, diag);
}

/* `last` is the token before: FOR UPDATE locks, and INSERT ... ON DUPLICATE
 * KEY UPDATE was judged by its first word. */
static bool is_forbidden(const struct mysql_token *token,
                         const struct mysql_token *last, enum db_origin origin)
{
    if (token->kind == MYSQL_TOKEN_HIDDEN || is_one_of(token, functions))
        return true;
    /* variables outlive the handler's call */
    if (token->kind == MYSQL_TOKEN_SIGN && token->text.data[0] == '@')
        return true;
    if (mysql_scan_is(last, "INTO") &&
        (mysql_scan_is(token, "OUTFILE") || mysql_scan_is(token, "DUMPFILE")))
        return true;
    return origin == DB_SCRIPT_READ && is_one_of(token, writes) &&
           !mysql_scan_is(token, "REPLACE") &&
           !(mysql_scan_is(token, "INSERT") || mysql_scan_is(last, "FOR"));
}

/* --- tables of the host --------------------------------------------------- */

static bool is_host_table(const struct catalog_name *hosts, struct text name)
{
    for (; hosts != NULL && hosts->value != NULL; hosts++) {
        if (strlen(hosts->value) == name.len &&
            strncasecmp(hosts->value, name.data, name.len) == 0)
            return true;
    }
    return false;
}

static enum status host_table(struct text name, struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT,
                    "a script may not run INSERT, UPDATE or DELETE on a table "
                    "of the host: " TEXT_FORMAT " may only be read",
                    TEXT_ARGS(name));
}

static struct text name_of(const struct mysql_token *token)
{
    struct text name = token->text;

    if (token->kind == MYSQL_TOKEN_NAME && name.len >= 2)
        name = (struct text){name.data + 1, name.len - 2};
    return name;
}

/* Words between INSERT or REPLACE and the table. */
static bool is_modifier(const struct mysql_token *token)
{
    static const char *const modifiers[] = {
        "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO", NULL};

    return is_one_of(token, modifiers);
}

static bool is_sign(const struct mysql_token *token, char sign)
{
    return token->kind == MYSQL_TOKEN_SIGN && token->text.data[0] == sign;
}

/*
 * The table of an INSERT or REPLACE, behind its schema; what it is filled from
 * may be any. An UPDATE and a DELETE may name several tables and change them
 * under other names, so they have to do without the host's up to SET or WHERE.
 */
static enum status check_targets(struct mysql_scan scan,
                                 const struct catalog_name *hosts,
                                 struct diag *diag)
{
    static const char *const ends[] = {"SET", "WHERE", "RETURNING", NULL};
    struct mysql_token token = mysql_scan_next(&scan);
    bool one = mysql_scan_is(&token, "INSERT") ||
               mysql_scan_is(&token, "REPLACE");

    if (!is_one_of(&token, writes))
        return STATUS_OK;
    while ((token = mysql_scan_next(&scan)).kind != MYSQL_TOKEN_END &&
           !is_one_of(&token, ends)) {
        struct mysql_scan ahead = scan;
        struct mysql_token next = mysql_scan_next(&ahead);

        if (token.kind != MYSQL_TOKEN_WORD && token.kind != MYSQL_TOKEN_NAME)
            continue;
        if (is_sign(&next, '.') || (one && is_modifier(&token)))
            continue;
        if (is_host_table(hosts, name_of(&token)))
            return host_table(name_of(&token), diag);
        if (one)
            break;
    }
    return STATUS_OK;
}

enum status mysql_guard_table(const char *table, enum db_origin origin,
                              const struct catalog_name *hosts,
                              struct diag *diag)
{
    if (origin == DB_HOST || origin == DB_PERSON ||
        !is_host_table(hosts, text_of(table)))
        return STATUS_OK;
    return host_table(text_of(table), diag);
}

/* --- a statement ---------------------------------------------------------- */

enum status mysql_guard(struct text sql, enum db_origin origin, bool creates,
                        const struct catalog_name *hosts, struct diag *diag)
{
    struct mysql_scan scan = {sql.data, sql.data + sql.len};
    struct mysql_token last = {.kind = MYSQL_TOKEN_END};
    struct mysql_token token;
    enum status status;

    if (origin == DB_HOST || origin == DB_PERSON)
        return STATUS_OK;
    status = check_first(&scan, origin, creates, diag);
    if (status == STATUS_OK)
        status = check_targets((struct mysql_scan){sql.data, scan.end}, hosts,
                               diag);
    if (status != STATUS_OK)
        return status;
    while ((token = mysql_scan_next(&scan)).kind != MYSQL_TOKEN_END) {
        if (is_forbidden(&token, &last, origin))
            return refuse(token.text, origin, creates, diag);
        last = token;
    }
    return STATUS_OK;
}
