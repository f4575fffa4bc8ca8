/*
 * Bare, SQLite -- connection, statements and checkpoints with sqlite3.
 */
#ifndef BENCH_BARE_SQLITE_H
#define BENCH_BARE_SQLITE_H

#include "bare.h"

#include <sqlite3.h>

/* The session of host/db/sqlite.c, so that both pay for the same safety. */
static const char *const bare_pragmas = "PRAGMA journal_mode = WAL;"
                                        "PRAGMA synchronous = FULL;"
                                        "PRAGMA foreign_keys = ON;"
                                        "PRAGMA temp_store = MEMORY;"
                                        "PRAGMA cache_size = -16384;"
                                        "PRAGMA wal_autocheckpoint = 16000;"
                                        "PRAGMA journal_size_limit = 67108864";

static inline sqlite3 *bare_open(const char *path)
{
    sqlite3 *db = NULL;
    char *error = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        bare_die(path, sqlite3_errmsg(db));
    if (sqlite3_exec(db, bare_pragmas, NULL, NULL, &error) != SQLITE_OK)
        bare_die(path, error);
    return db;
}

static inline sqlite3_stmt *bare_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                           NULL) != SQLITE_OK)
        bare_die(sql, sqlite3_errmsg(db));
    return statement;
}

/* Runs a statement that gives no rows. */
static inline void bare_run(sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE)
        bare_die(sqlite3_sql(statement),
                 sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
}

/* Steps to the next row; false at the end, the statement is reset then. */
static inline int bare_row(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        bare_die(sqlite3_sql(statement),
                 sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
    return 0;
}

static inline void bare_bind(sqlite3_stmt *statement, int place,
                             struct slice text)
{
    sqlite3_bind_text(statement, place, text.data, text.size, SQLITE_STATIC);
}

static inline struct slice bare_column(sqlite3_stmt *statement, int column)
{
    struct slice text;

    text.data = (const char *)sqlite3_column_text(statement, column);
    text.size = sqlite3_column_bytes(statement, column);
    return text;
}

/* Id of the consumer that the host has registered for a projection. */
static inline void bare_consumer(sqlite3 *db, const char *projection,
                                 char out[37])
{
    sqlite3_stmt *statement = bare_prepare(
        db, "SELECT id FROM CONSUMERS WHERE consumer_name = ?1");

    sqlite3_bind_text(statement, 1, projection, -1, SQLITE_STATIC);
    if (!bare_row(statement))
        bare_die(projection, "is not registered");
    snprintf(out, 37, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

/* The lowest checkpoint of the consumer. */
static inline int64_t bare_checkpoint(sqlite3_stmt *checkpoints)
{
    int64_t lowest = INT64_MAX;

    while (bare_row(checkpoints)) {
        int64_t position = sqlite3_column_int64(checkpoints, 0);

        if (position < lowest)
            lowest = position;
    }
    if (lowest == INT64_MAX)
        bare_die("checkpoints", "the consumer has none");
    return lowest;
}

#define BARE_CHECKPOINT_READ                                                   \
    "SELECT position FROM CONSUMER_CHECKPOINTS"                                \
    " WHERE consumer_id = ?1 AND source_name = 'event-store'"
#define BARE_CHECKPOINT_MOVE                                                   \
    "UPDATE CONSUMER_CHECKPOINTS SET position = ?2"                            \
    " WHERE consumer_id = ?1 AND source_name = 'event-store'"

/* Moves the mark to the end of the event store. */
static inline void bare_mark(sqlite3 *db)
{
    sqlite3_stmt *statement = bare_prepare(
        db, "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark ="
            " (SELECT val FROM EVENT_STORE_GLOBAL_POSITION WHERE id = 1)"
            " WHERE topic_name = 'event-store'");

    bare_run(statement);
    sqlite3_finalize(statement);
}

#endif
