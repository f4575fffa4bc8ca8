/*
 * Temporary database -- a new SQLite file in a folder of its own, for unit
 * tests that need the real driver. Any failure ends the test.
 */
#ifndef SPEC_UNIT_TEMP_DATABASE_H
#define SPEC_UNIT_TEMP_DATABASE_H

#include "db/db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct temp_database {
    char folder[256];
    char url[300];
    struct db *db;
};

/** The message must hold `part`. */
static inline void assert_says(const struct diag *diag, const char *part)
{
    if (strstr(diag->message, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag->message, part);
}

/** `status` must be OK; else the message is shown. */
static inline void assert_ok(enum status status, const struct diag *diag)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_word(status), diag->message);
}

/** One more connection to the same file. */
static inline struct db *temp_database_connect(const struct temp_database *temp,
                                               bool read_only)
{
    struct db_options options = {.url = temp->url,
                                 .busy_timeout = INT64_C(10000000),
                                 .create = !read_only,
                                 .read_only = read_only};
    struct db *db = NULL;
    struct diag diag;

    assert_ok(db_open(&options, &db, &diag), &diag);
    return db;
}

/** A file that no connection has made yet. */
static inline void temp_database_reserve(struct temp_database *temp)
{
    const char *base = getenv("TMPDIR");

    snprintf(temp->folder, sizeof(temp->folder), "%s/moontide-XXXXXX",
             base != NULL ? base : P_tmpdir);
    assert_non_null(mkdtemp(temp->folder));
    snprintf(temp->url, sizeof(temp->url), "sqlite:%s/test.db", temp->folder);
    temp->db = NULL;
}

static inline void temp_database_open(struct temp_database *temp)
{
    temp_database_reserve(temp);
    temp->db = temp_database_connect(temp, false);
}

static inline void temp_database_close(struct temp_database *temp)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char path[320];

    db_close(temp->db);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(path, sizeof(path), "%s/test.db%s", temp->folder, suffixes[i]);
        unlink(path);
    }
    rmdir(temp->folder);
}

/** Runs statements without parameters; returns how it went. */
static inline enum status temp_database_try(struct db *db, const char *script,
                                            struct diag *diag)
{
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = db_script(db, text_of(script), DB_HOST, diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    return status;
}

static inline void temp_database_run(struct db *db, const char *script)
{
    struct diag diag;

    assert_ok(temp_database_try(db, script, &diag), &diag);
}

/** A query for one integer; `fallback` when there is none. */
static inline int64_t temp_database_number(struct db *db, const char *query,
                                           int64_t fallback)
{
    struct db_sql sql = db_sql_make(text_of(query), DB_HOST);
    struct diag diag;
    int64_t value = 0;
    bool found = false;

    assert_ok(db_begin_read(db, &diag), &diag);
    assert_ok(db_query_int64(db, &sql, NULL, 0, &value, &found, &diag), &diag);
    db_rollback(db);
    return found ? value : fallback;
}

#endif
