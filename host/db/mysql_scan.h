/*
 * MySQL scan -- takes SQL apart into tokens, as far as the driver must know
 * it: where parameters stand, where a statement ends, what it begins with.
 *
 * It knows the SQL of the host's sessions: ANSI_QUOTES, so "name" is a name,
 * and NO_BACKSLASH_ESCAPES, so a backslash is a letter like any other.
 */
#ifndef HOST_DB_MYSQL_SCAN_H
#define HOST_DB_MYSQL_SCAN_H

#include "base/buffer.h"
#include "base/text.h"
#include "db/db.h"

enum mysql_token_kind {
    MYSQL_TOKEN_END,
    MYSQL_TOKEN_WORD,   /* keyword or plain name */
    MYSQL_TOKEN_NAME,   /* quoted name */
    MYSQL_TOKEN_STRING, /* also an unterminated one */
    MYSQL_TOKEN_PARAM,  /* ? or ?12 */
    MYSQL_TOKEN_HIDDEN, /* a comment that the server executes */
    MYSQL_TOKEN_SIGN,   /* one other character */
};

struct mysql_token {
    enum mysql_token_kind kind;
    struct text text;
};

struct mysql_scan {
    const char *at;
    const char *end;
};

/** The next token; white space and comments are passed over. */
struct mysql_token mysql_scan_next(struct mysql_scan *scan);

/** Whether a token is this keyword, in any case. */
bool mysql_scan_is(const struct mysql_token *token, const char *word);

/** Numbers of the parameters in the order of their marks, from 0. */
struct mysql_marks {
    unsigned *numbers;
    size_t count; /* of marks */
    size_t capacity;
    size_t nparams; /* the highest number plus one */
};

/** Appends the text with every ?n as a plain ?. A mark without a number is
 * the next one. */
void mysql_scan_marks(struct text sql, struct buffer *out,
                      struct mysql_marks *marks);

/**
 * The next statement of a script: *at goes behind it, *statement is without
 * the delimiter; false at the end. `DELIMITER x` on a line of its own changes
 * the delimiter, as in the client program.
 */
bool mysql_scan_statement(struct text script, size_t *at,
                          struct text *delimiter, struct text *statement);

struct catalog_name; /* db/catalog.h */

/**
 * mysql_guard.c: PERMANENT when a script may not run this: whatever touches
 * the session, the transaction or the existence of tables, and what writes a
 * table of the host (the values of `hosts`, which may be NULL). `creates`: a
 * script of DDL, which may create tables, indexes and views.
 */
enum status mysql_guard(struct text sql, enum db_origin origin, bool creates,
                        const struct catalog_name *hosts,
                        struct diag *diag) MUST_CHECK;
/** The same for a table that a bulk statement writes. */
enum status mysql_guard_table(const char *table, enum db_origin origin,
                              const struct catalog_name *hosts,
                              struct diag *diag) MUST_CHECK;

#endif
