/*
 * Support for the mysql_*_test.c files: a database of its own for each test on
 * the server that MARIADB_URL names, and a second connection that knows
 * nothing of the host, to look from outside.
 *
 * Without a server these tests fail: nothing is left out.
 */
#ifndef SPEC_UNIT_MYSQL_SUPPORT_H
#define SPEC_UNIT_MYSQL_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <mysql.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "db/db.h"
#include "db/mysql_url.h"
#include "db/shape.h"

#define INSERT "INSERT INTO t (a) VALUES (?1)"

struct fixture {
    char name[64]; /* of the test's database */
    char url[1024];
    struct mysql_url server;
    MYSQL *raw;
    struct db *db;
    struct diag diag;
};

static inline MYSQL *raw_connect(const struct fixture *f, const char *user,
                                 const char *database)
{
    MYSQL *raw = mysql_init(NULL);
    bool own = user == NULL;

    if (mysql_real_connect(raw, f->server.host, own ? f->server.user : user,
                           own ? f->server.password : "", database,
                           f->server.port, f->server.socket,
                           CLIENT_MULTI_RESULTS) == NULL)
        fail_msg("connect: %s", mysql_error(raw));
    return raw;
}

static inline void raw_run_on(MYSQL *raw, const char *text)
{
    MYSQL_RES *result;

    if (mysql_query(raw, text) != 0)
        fail_msg("%s: %s", text, mysql_error(raw));
    result = mysql_store_result(raw);
    if (result != NULL)
        mysql_free_result(result);
}

static inline void raw_run(struct fixture *f, const char *text)
{
    raw_run_on(f->raw, text);
}

/* Also the text of one value; "" for NULL or no row. */
static inline void raw_text(struct fixture *f, const char *text, char *out,
                            size_t size)
{
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(f->raw, text) != 0)
        fail_msg("%s: %s", text, mysql_error(f->raw));
    result = mysql_store_result(f->raw);
    assert_non_null(result);
    row = mysql_fetch_row(result);
    snprintf(out, size, "%s", row != NULL && row[0] != NULL ? row[0] : "");
    mysql_free_result(result);
}

static inline long long raw_number(struct fixture *f, const char *text)
{
    char value[64];

    raw_text(f, text, value, sizeof(value));
    return atoll(value);
}

/* The server's URL with another database and, if wanted, another user. */
static inline void url_of(const struct fixture *f, const char *user,
                          const char *database, unsigned port, char *out,
                          size_t size)
{
    const char *given = getenv("MARIADB_URL");
    const char *start = given != NULL ? strstr(given, "://") : NULL;
    const char *end, *at, *options, *host;
    struct buffer url = BUFFER_EMPTY;

    if (start == NULL)
        return; /* the setup has failed by then */
    start += 3;
    end = start + strcspn(start, "/?");
    at = memrchr(start, '@', (size_t)(end - start));
    options = strchr(given, '?');
    host = at != NULL ? at + 1 : start;

    buffer_append(&url, given, (size_t)(start - given));
    if (user != NULL)
        buffer_printf(&url, "%s@", user);
    else if (at != NULL)
        buffer_append(&url, start, (size_t)(at + 1 - start));
    if (port != 0)
        buffer_printf(&url, "127.0.0.1:%u", port);
    else
        buffer_append(&url, host, (size_t)(end - host));
    buffer_printf(&url, "/%s%s", database,
                  options != NULL && port == 0 ? options : "");
    assert_true(url.len < size);
    memcpy(out, url.data, url.len + 1);
    buffer_free(&url);
    (void)f;
}

static inline struct db *open_url(struct fixture *f, const char *url)
{
    struct db_options options = {.url = url, .busy_timeout = 1000000};
    struct db *db = NULL;

    if (db_open(&options, &db, &f->diag) != STATUS_OK)
        fail_msg("open: %s", f->diag.message);
    return db;
}

static inline struct db *connect_again(struct fixture *f)
{
    return open_url(f, f->url);
}

static inline int fixture_setup(void **state)
{
    static int number;
    const char *url = getenv("MARIADB_URL");
    struct fixture *f = calloc(1, sizeof(*f));
    char text[128];

    *state = f;
    if (url == NULL || url[0] == '\0')
        fail_msg("MARIADB_URL must name a server for the tests");
    if (mysql_url_parse(url, &f->server, &f->diag) != STATUS_OK)
        fail_msg("%s", f->diag.message);
    snprintf(f->name, sizeof(f->name), "moontide_unit_%d_%d", (int)getpid(),
             ++number);
    f->raw = raw_connect(f, NULL, NULL);
    /* what a server has that nobody set up with care */
    snprintf(text, sizeof(text),
             "CREATE DATABASE %s CHARACTER SET latin1"
             " COLLATE latin1_swedish_ci",
             f->name);
    raw_run(f, text);
    if (mysql_select_db(f->raw, f->name) != 0)
        fail_msg("%s", mysql_error(f->raw));
    raw_run(f, "SET SESSION lock_wait_timeout = 10");
    url_of(f, NULL, f->name, 0, f->url, sizeof(f->url));
    f->db = connect_again(f);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    char text[128];

    db_close(f->db);
    if (f->raw != NULL) {
        snprintf(text, sizeof(text), "DROP DATABASE %s", f->name);
        raw_run(f, text);
        mysql_close(f->raw);
    }
    mysql_url_free(&f->server);
    free(f);
    return 0;
}

#define with_server(test)                                                      \
    cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* First in every test. */
static inline struct fixture *begin_test(void **state)
{
    return *state;
}

static inline struct db_sql sql_of(const char *text)
{
    return db_sql_make(text_of(text), DB_HOST);
}

static inline struct db_sql script_sql(const char *text)
{
    return db_sql_make(text_of(text), DB_SCRIPT);
}

static inline enum status try_on(struct fixture *f, struct db *db,
                                 const char *text)
{
    struct db_sql sql = sql_of(text);

    return db_execute(db, &sql, NULL, 0, NULL, &f->diag);
}

static inline enum status try_run(struct fixture *f, const char *text)
{
    return try_on(f, f->db, text);
}

static inline void ok(struct fixture *f, enum status status)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_word(status), f->diag.message);
}

static inline void run(struct fixture *f, const char *text)
{
    ok(f, try_run(f, text));
}

static inline void begin(struct fixture *f)
{
    ok(f, db_begin(f->db, &f->diag));
}

static inline void commit(struct fixture *f)
{
    ok(f, db_commit(f->db, NULL, &f->diag));
}

/* INT64_MIN stands for "no row or NULL". */
static inline int64_t number_from(struct fixture *f, struct db *db,
                                  const char *text)
{
    struct db_sql sql = sql_of(text);
    int64_t value;
    bool found;

    ok(f, db_query_int64(db, &sql, NULL, 0, &value, &found, &f->diag));
    return found ? value : INT64_MIN;
}

static inline int64_t number(struct fixture *f, const char *text)
{
    return number_from(f, f->db, text);
}

static inline void queue_one(struct fixture *f, const char *text, int64_t value,
                             int64_t expect, int64_t tag)
{
    struct db_sql sql = sql_of(text);
    struct db_value param = db_integer(value);

    ok(f, db_queue(f->db, &sql, &param, 1, expect, tag, &f->diag));
}

static inline void assert_says(const struct fixture *f, const char *part)
{
    if (strstr(f->diag.message, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, f->diag.message);
}

#endif
