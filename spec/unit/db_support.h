/*
 * Support for the db_*_test.c files: a folder of its own for each test, and
 * short forms for statements that must succeed or must fail.
 */
#ifndef SPEC_UNIT_DB_SUPPORT_H
#define SPEC_UNIT_DB_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/buffer.h"
#include "db/db.h"

struct fixture {
    char schema[48]; /* on a server: of this test alone; "" elsewhere */
    bool no_prepare;
    char folder[64];
    char path[96];
    char url[512];
    struct db *db;
    struct diag diag;
};

/*
 * A lock of a server that is waited for comes, however busy the machine is: in
 * a database of PostgreSQL one after the other makes tables, tests that run
 * beside this one among them. Who writes to a file is the test itself, and it
 * is met in vain.
 */
#define FIXTURE_PATIENT INT64_C(60000000)
#define FIXTURE_HASTY   INT64_C(20000)

static inline struct db *fixture_open(struct fixture *f, int64_t busy_timeout)
{
    struct db_options options = {.url = f->url,
                                 .busy_timeout = busy_timeout,
                                 .create = true,
                                 .no_prepare = f->no_prepare};
    struct db *db;

    if (db_open(&options, &db, &f->diag) != STATUS_OK)
        fail_msg("open: %s", f->diag.message);
    return db;
}

static inline struct db *fixture_connect(struct fixture *f)
{
    bool file = strncmp(f->url, "sqlite:", strlen("sqlite:")) == 0;

    return fixture_open(f, file ? FIXTURE_HASTY : FIXTURE_PATIENT);
}

/* For locks that nobody lets go of. */
static inline struct db *fixture_connect_hasty(struct fixture *f)
{
    return fixture_open(f, FIXTURE_HASTY);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    strcpy(f->folder, P_tmpdir "/moontide-db-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/test.db", f->folder);
    snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
    f->db = fixture_connect(f);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".other"};
    struct fixture *f = *state;

    db_close(f->db);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

/* --- the same on every driver -------------------------------------------- */

/* A server stands ready or the run has failed: nothing is left out. */
static inline const char *server_url(const char *variable)
{
    const char *url = getenv(variable);

    if (url == NULL || url[0] == '\0')
        fail_msg("%s must name a server for the tests", variable);
    return url;
}

static inline void server_run(struct fixture *f, const char *url,
                              const char *text)
{
    struct db_options options = {.url = url, .busy_timeout = FIXTURE_PATIENT};
    struct db *db;

    if (db_open(&options, &db, &f->diag) != STATUS_OK ||
        db_script(db, text_of(text), DB_HOST, &f->diag) != STATUS_OK)
        fail_msg("%s", f->diag.message);
    db_close(db);
}

/* A schema of its own for each test, and a URL that finds it. */
static inline int postgres_open(void **state, bool no_prepare)
{
    static int count;
    struct fixture *f = calloc(1, sizeof(*f));
    const char *url = server_url("POSTGRES_URL");
    char text[128];

    snprintf(f->schema, sizeof(f->schema), "moontide_test_%d_%d", getpid(),
             count++);
    snprintf(text, sizeof(text), "CREATE SCHEMA %s", f->schema);
    server_run(f, url, text);
    snprintf(f->url, sizeof(f->url), "%s%coptions=-csearch_path%%3D%s", url,
             strchr(url, '?') != NULL ? '&' : '?', f->schema);
    f->no_prepare = no_prepare;
    f->db = fixture_connect(f);
    *state = f;
    return 0;
}

static inline int postgres_setup(void **state)
{
    return postgres_open(state, false);
}

/* As behind a pooler, which keeps no prepared statements. */
static inline int postgres_setup_pooled(void **state)
{
    return postgres_open(state, true);
}

static inline int postgres_teardown(void **state)
{
    struct fixture *f = *state;
    char text[128];

    db_close(f->db);
    snprintf(text, sizeof(text), "DROP SCHEMA %s CASCADE", f->schema);
    server_run(f, server_url("POSTGRES_URL"), text);
    free(f);
    return 0;
}

/* A database of its own for each test. */
static inline int mariadb_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct buffer url = BUFFER_EMPTY;

    if (db_scratch(server_url("MARIADB_URL"), &url, &f->diag) != STATUS_OK)
        fail_msg("%s", f->diag.message);
    assert_true(url.len < sizeof(f->url));
    memcpy(f->url, url.data, url.len + 1);
    buffer_free(&url);
    f->db = fixture_connect(f);
    *state = f;
    return 0;
}

static inline int mariadb_teardown(void **state)
{
    struct fixture *f = *state;

    db_close(f->db);
    if (db_scratch_drop(f->url, &f->diag) != STATUS_OK)
        fail_msg("%s", f->diag.message);
    free(f);
    return 0;
}

#define on_sqlite(test)                                                        \
    {                                                                          \
#test " (sqlite)", test, fixture_setup, fixture_teardown, NULL         \
    }
#define on_postgres(test)                                                      \
    {                                                                          \
#test " (postgres)", test, postgres_setup, postgres_teardown, NULL     \
    }
#define on_pooled_postgres(test)                                               \
    {                                                                          \
#test " (postgres, not prepared)", test, postgres_setup_pooled,        \
            postgres_teardown, NULL                                            \
    }
#define on_mariadb(test)                                                       \
    {                                                                          \
#test " (mariadb)", test, mariadb_setup, mariadb_teardown, NULL        \
    }
#define on_both_postgres(test) on_postgres(test), on_pooled_postgres(test)
#define on_every_driver(test)                                                  \
    on_sqlite(test), on_both_postgres(test), on_mariadb(test)

#define with_database(test)                                                    \
    cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static inline struct db_sql sql_of(const char *text)
{
    return db_sql_make(text_of(text), DB_HOST);
}

static inline struct db_sql script_sql(const char *text)
{
    return db_sql_make(text_of(text), DB_SCRIPT);
}

static inline enum status try_run(struct fixture *f, struct db *db,
                                  const char *text)
{
    struct db_sql sql = sql_of(text);

    return db_execute(db, &sql, NULL, 0, NULL, &f->diag);
}

static inline void ok(struct fixture *f, enum status status)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_word(status), f->diag.message);
}

static inline void run(struct fixture *f, const char *text)
{
    ok(f, try_run(f, f->db, text));
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

static inline void assert_says(const struct fixture *f, const char *part)
{
    if (strstr(f->diag.message, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, f->diag.message);
}

/* --- for SQL that differs, and tables for what does not ------------------- */

static inline bool has_server(const struct fixture *f)
{
    return strcmp(db_dialect(f->db), "sqlite") != 0;
}

static inline bool is_mariadb(const struct fixture *f)
{
    return strcmp(db_dialect(f->db), "mysql") == 0;
}

static inline void make_table(struct fixture *f)
{
    run(f, "CREATE TABLE t (a BIGINT NOT NULL PRIMARY KEY, b TEXT)");
}

static inline void queue_one(struct fixture *f, const char *text, int64_t value,
                             int64_t expect, int64_t tag)
{
    struct db_sql sql = sql_of(text);
    struct db_value param = db_integer(value);

    ok(f, db_queue(f->db, &sql, &param, 1, expect, tag, &f->diag));
}

static inline void insert_later(struct fixture *f, int64_t value, int64_t tag)
{
    queue_one(f, "INSERT INTO t (a) VALUES (?1)", value, 1, tag);
}

/* A connection of another program, without the host's settings. */
static inline sqlite3 *raw_open(const struct fixture *f)
{
    sqlite3 *raw;

    assert_int_equal(sqlite3_open(f->path, &raw), SQLITE_OK);
    return raw;
}

static inline void raw_run(sqlite3 *raw, const char *text)
{
    if (sqlite3_exec(raw, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(raw));
}

#endif
