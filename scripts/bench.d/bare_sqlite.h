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

/* --- pages --------------------------------------------------------------- */

/* What each page of a consumer of the event store needs. */
struct bare_loop {
    sqlite3 *db;
    char consumer[37];
    sqlite3_stmt *begin, *commit, *checkpoint, *move;
    sqlite3_stmt *events; /* its first column is the position */
};

/* `columns`: what `events` reads beside the position. */
static inline void bare_loop_open(struct bare_loop *loop, const char *path,
                                  const char *consumer, const char *columns)
{
    char sql[256];

    loop->db = bare_open(path);
    bare_consumer(loop->db, consumer, loop->consumer);
    bare_mark(loop->db);
    loop->begin = bare_prepare(loop->db, "BEGIN IMMEDIATE");
    loop->commit = bare_prepare(loop->db, "COMMIT");
    loop->checkpoint = bare_prepare(loop->db, BARE_CHECKPOINT_READ);
    loop->move = bare_prepare(loop->db, BARE_CHECKPOINT_MOVE);
    snprintf(sql, sizeof(sql),
             "SELECT global_position, %s FROM EVENT_STORE"
             " WHERE global_position > ?1 ORDER BY global_position LIMIT %d",
             columns, BARE_BATCH);
    loop->events = bare_prepare(loop->db, sql);
    sqlite3_bind_text(loop->checkpoint, 1, loop->consumer, 36, SQLITE_STATIC);
    sqlite3_bind_text(loop->move, 1, loop->consumer, 36, SQLITE_STATIC);
}

/* Begins a transaction at the checkpoint; `events` then gives its page. */
static inline int64_t bare_loop_begin(struct bare_loop *loop)
{
    int64_t position;

    bare_run(loop->begin);
    position = bare_checkpoint(loop->checkpoint);
    sqlite3_bind_int64(loop->events, 1, position);
    return position;
}

/* `got`: the events of the page, of which the last stands at `position`. */
static inline void bare_loop_commit(struct bare_loop *loop, int got,
                                    int64_t position)
{
    if (got > 0) {
        sqlite3_bind_int64(loop->move, 2, position);
        bare_run(loop->move);
    }
    bare_run(loop->commit);
}

/* The caller has finalized its own statements. */
static inline void bare_loop_close(struct bare_loop *loop)
{
    sqlite3_finalize(loop->begin);
    sqlite3_finalize(loop->commit);
    sqlite3_finalize(loop->checkpoint);
    sqlite3_finalize(loop->move);
    sqlite3_finalize(loop->events);
    if (sqlite3_close(loop->db) != SQLITE_OK)
        bare_die(loop->consumer, sqlite3_errmsg(loop->db));
}

#endif
